//! How a process ended, in words.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The name of a signal and what it commonly means.
pub fn signal_name(number: i32) -> (String, &'static str) {
    let (name, meaning) = match number {
        1 => ("SIGHUP", "hangup"),
        2 => ("SIGINT", "interrupt"),
        3 => ("SIGQUIT", "quit"),
        4 => ("SIGILL", "illegal instruction"),
        5 => ("SIGTRAP", "trap"),
        6 => ("SIGABRT", "abort, as by a failed assertion"),
        7 => ("SIGBUS", "access beyond mapped memory"),
        8 => ("SIGFPE", "arithmetic error, as a division by zero"),
        9 => ("SIGKILL", "killed, perhaps for want of memory"),
        10 => ("SIGUSR1", "user signal 1"),
        11 => ("SIGSEGV", "invalid memory access"),
        12 => ("SIGUSR2", "user signal 2"),
        13 => ("SIGPIPE", "its output was closed"),
        14 => ("SIGALRM", "alarm"),
        15 => ("SIGTERM", "terminated"),
        21 => ("SIGTTIN", "reads the terminal"),
        22 => ("SIGTTOU", "writes to the terminal"),
        24 => ("SIGXCPU", "limit of processor time"),
        25 => ("SIGXFSZ", "limit of file size"),
        31 => ("SIGSYS", "forbidden system call"),
        _ => return (format!("signal {number}"), ""),
    };
    (name.to_owned(), meaning)
}

/// "exited with code 3", "was killed by signal 11 (SIGSEGV: invalid memory access; core dumped)".
pub fn ending(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        return format!("exited with code {}", status.code().unwrap_or_default());
    };
    let (name, meaning) = signal_name(signal);
    let core = if status.core_dumped() { "; core dumped" } else { "" };
    if meaning.is_empty() {
        format!("was killed by {name}{core}")
    } else {
        format!("was killed by signal {signal} ({name}: {meaning}{core})")
    }
}

/// The exit code that passes this on: the program's own, or 128 and the signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    match status.signal() {
        Some(signal) => 128 + (signal as u8 & 127),
        None => status.code().unwrap_or(1) as u8,
    }
}

/// The exit code for MPI_Abort: the low eight bits of `code`, as the system gives them, but never 0 for
/// another code than 0.
pub fn abort_code(code: i32) -> u8 {
    match (code, code as u8) {
        (0, _) => 0,
        (_, 0) => 1,
        (_, low) => low,
    }
}

/// "1 rank", "3 ranks".
pub fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_in_words_and_codes() {
        let exited = ExitStatus::from_raw(3 << 8);
        assert_eq!((ending(exited).as_str(), exit_code(exited)), ("exited with code 3", 3));
        let killed = ExitStatus::from_raw(11 | 0x80);
        assert!(ending(killed).contains("signal 11 (SIGSEGV") && ending(killed).contains("core dumped"));
        assert_eq!(exit_code(killed), 139);
        assert_eq!(ending(ExitStatus::from_raw(40)), "was killed by signal 40");
    }

    #[test]
    fn abort_codes_are_never_success_by_accident() {
        assert_eq!([0, 5, 256, -1, 257].map(abort_code), [0, 5, 1, 255, 1]);
    }
}
