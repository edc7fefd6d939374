group! {
    acuity,
    asana,
    cal_com,
    calendly,
    clickup,
    favro,
    linear,
    quickbooks,
    trello,
    xero,
}
