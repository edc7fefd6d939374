group! {
    acuity,
    asana,
    cal_com,
    calendly,
    clickup,
    favro,
    linear,
    monday,
    quickbooks,
    trello,
    xero,
}
