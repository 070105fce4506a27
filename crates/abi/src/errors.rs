//! How a program ends when it cannot go on, and how an internal error is told.

use parnass_mpi::constants::*;
use std::ffi::c_int;

unsafe extern "C" {
    // The C library's standard output stream.
    static stdout: *mut libc::FILE;
}

/// Writes out what the program has printed so far; otherwise its last words would be lost.
pub fn flush_c_output() {
    // SAFETY: `stdout` is the C library's stream, valid for the life of the process.
    unsafe {
        libc::fflush(stdout);
    }
}

/// Ends the process without running exit handlers, which could call MPI again.
pub fn exit_now(code: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// The name of an error class.
pub fn class_name(class: c_int) -> String {
    match ERROR_CLASSES.iter().find(|&&(_, value)| value == class) {
        Some(&(name, _)) => name.to_owned(),
        None => format!("error code {class}"),
    }
}

/// Makes a panic in the library tell what it is: an error of Parnass, not of the program. The panic then cannot
/// leave the C call, so that the process ends by SIGABRT and the launcher ends the job.
pub fn install_panic_hook() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let rank = match crate::state::running() {
                Some(running) => format!("rank {} on host {}: ", running.process.rank(), running.process.host_name()),
                None => String::new(),
            };
            let trace = std::backtrace::Backtrace::force_capture().to_string();
            let call = trace
                .split(|character: char| !character.is_alphanumeric() && character != '_')
                .rfind(|word| word.starts_with("MPI_") || word.starts_with("PMPI_"))
                .unwrap_or("MPI");
            flush_c_output();
            eprintln!(
                "parnass: {call}: {rank}internal error: {panic}\n  This is an error of Parnass, not of the program; please report it with the program and this trace:\n{trace}"
            );
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: &str = "PARNASS_TEST_PANICS";

    /// A call whose body goes wrong, as the generated ones are.
    #[unsafe(no_mangle)]
    #[allow(non_snake_case)]
    extern "C" fn MPI_Panicking_test() {
        let ranks: Vec<i32> = std::hint::black_box(Vec::new());
        println!("{}", ranks[std::hint::black_box(7)]);
    }

    #[test]
    fn a_panic_says_that_it_is_an_error_of_the_library_and_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            install_panic_hook();
            MPI_Panicking_test();
            exit_now(0);
        }
        let test = std::env::current_exe().expect("a test has a path");
        let output = std::process::Command::new(test)
            .args([
                "--exact",
                "--nocapture",
                "errors::tests::a_panic_says_that_it_is_an_error_of_the_library_and_ends_the_process",
            ])
            .env(CHILD, "1")
            .output()
            .expect("the test starts itself");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{text}");
        assert!(text.contains("parnass: MPI_Panicking_test: internal error: "), "{text}");
        assert!(text.contains("error of Parnass, not of the program"), "{text}");
    }

    #[test]
    fn names_of_classes() {
        assert_eq!(class_name(MPI_ERR_TRUNCATE), "MPI_ERR_TRUNCATE");
        assert_eq!(class_name(99_999), "error code 99999");
    }
}
