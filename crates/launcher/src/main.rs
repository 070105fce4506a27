#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    parnass_launcher::run(std::env::args_os().skip(1).collect())
}
