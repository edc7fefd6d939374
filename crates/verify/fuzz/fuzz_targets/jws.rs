#![no_main]

use libfuzzer_sys::fuzz_target;
use oncebox_verify_fuzz::{Family, run};

fuzz_target!(|data: &[u8]| run(Family::Jws, data));
