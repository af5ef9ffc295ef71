#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| taskledger_fuzz::eventbus::run(bytes));
