group! {
    acuity,
    asana,
    cal_com,
    calendly,
    clickup,
    exact_online,
    favro,
    linear,
    quickbooks,
    trello,
    xero,
}
