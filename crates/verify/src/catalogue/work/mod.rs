group! {
    acuity,
    asana,
    cal_com,
    calendly,
    clickup,
    exact_online,
    favro,
    linear,
    monday,
    quickbooks,
    trello,
    xero,
}
