group! {
    cloudsignal,
    enode,
    meraki,
    oura,
    smartcar,
    strava,
}
