//! How jobs end when something goes wrong: what is said, with which code, and that nothing is left.

mod common;

use common::{Directory, Ended, await_until, finish, mark, marked, mpiexec, nothing_is_left, run, shell};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).unwrap()
}

/// Starts a job whose processes carry a mark, and waits until each rank has written a line.
fn start(ranks: u32, script: &str) -> (Child, String) {
    start_with(&[], ranks, script)
}

fn start_with(options: &[&str], ranks: u32, script: &str) -> (Child, String) {
    use std::io::Read;
    let mark = mark();
    let (variable, ranks_text) = (format!("MARK={mark}"), ranks.to_string());
    let arguments = [options, &["-x", &variable, "-n", &ranks_text, "sh", "-c", script]].concat();
    let mut child = mpiexec(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.stdout.as_mut().unwrap();
    let mut lines = 0;
    while lines < ranks {
        let mut byte = [0];
        assert_eq!(output.read(&mut byte).unwrap(), 1, "the job ended early");
        lines += u32::from(byte == *b"\n");
    }
    (child, mark)
}

fn one_line(ended: &Ended, part: &str) {
    let errors = ended.errors();
    assert!(errors.contains(part) && errors.lines().count() == 1, "{errors}");
}

#[test]
fn the_exit_code_is_that_of_the_rank_that_fails() {
    let ended = shell(4, "[ $PARNASS_RANK = 2 ] && exit 3; exec sleep 50");
    assert_eq!(ended.code(), 3);
    one_line(&ended, "rank 2 (sh, process ");
    one_line(&ended, "exited with code 3; ending 3 other ranks");
}

#[test]
fn signals_are_told_by_name() {
    for (name, code, text) in [
        ("KILL", 137, "signal 9 (SIGKILL"),
        ("SEGV", 139, "signal 11 (SIGSEGV: invalid memory access"),
        ("ABRT", 134, "signal 6 (SIGABRT"),
    ] {
        let ended =
            shell(3, &format!("ulimit -c 0; [ $PARNASS_RANK = 1 ] && kill -{name} $$; exec sleep 50"));
        one_line(&ended, "rank 1 (sh");
        one_line(&ended, text);
        assert_eq!(ended.code(), code);
    }
}

#[test]
fn what_a_rank_wrote_comes_before_its_end_is_told() {
    let ended = run(Command::new("sh").args([
        "-c",
        &format!(
            "{} -n 1 sh -c 'echo last words; printf unfinished; exit 9' 2>&1",
            env!("CARGO_BIN_EXE_mpiexec")
        ),
    ]));
    let text = ended.text();
    assert!(text.starts_with("last words\nunfinished\nmpiexec: rank 0"), "{text}");
    assert_eq!(ended.code(), 9);
}

/// Runs a job whose first rank fails with code 5 as soon as each other one, which run `script`, has written a line;
/// and how long it took from there.
fn fail_beside(ranks: u32, script: &str) -> (Ended, Duration) {
    let directory = Directory::new();
    let go = directory.file("go");
    let first = format!("echo; until [ -e {} ]; do sleep 0.01; done; exit 5", go.display());
    let (child, mark) = start(ranks, &format!("[ $PARNASS_RANK = 0 ] && {{ {first}; }}; {script}"));
    std::fs::write(go, "").unwrap();
    let start = Instant::now();
    let ended = finish(child);
    assert_eq!(ended.code(), 5);
    assert!(marked(&mark).is_empty());
    (ended, start.elapsed())
}

#[test]
fn ranks_that_ignore_the_request_to_end_are_killed() {
    let (_, time) = fail_beside(3, "trap '' TERM INT; echo; while :; do sleep 0.1; done");
    assert!(time > Duration::from_secs(1), "they were given no time");
}

#[test]
fn ranks_may_clean_up_when_asked_to_end() {
    let (ended, _) = fail_beside(3, "trap 'echo cleaned; exit 0' TERM; echo; while :; do sleep 0.05; done");
    assert_eq!(ended.text(), "cleaned\ncleaned\n");
}

#[test]
fn the_time_limit_ends_the_job() {
    let ended = run(&mut mpiexec(&["--timeout", "0.3", "-n", "2", "sleep", "50"]));
    assert_eq!(ended.code(), 124);
    one_line(&ended, "time limit of 0.3 s");
    let ended = run(mpiexec(&["-n", "1", "sleep", "50"]).env("MPIEXEC_TIMEOUT", "0.2"));
    assert_eq!(ended.code(), 124);
}

/// A rank with a child, a child that ignores requests, and one that has left its session and its parent.
const FAMILY: &str = "sleep 300 & (trap '' TERM HUP INT; sleep 301) & (setsid sleep 302 & ) ; \
                      setsid sh -c 'trap \"\" TERM; sleep 303' & echo started; wait";

#[test]
fn nothing_is_left_when_mpiexec_is_killed() {
    let (mut child, mark) = start(3, FAMILY);
    assert!(marked(&mark).len() >= 3);
    kill_process(pid(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    nothing_is_left(&mark);
}

#[test]
fn nothing_is_left_when_its_whole_group_is_killed() {
    let mark = mark();
    let mut command = mpiexec(&["-x", &format!("MARK={mark}"), "-n", "3", "sh", "-c", FAMILY]);
    let mut child = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    await_until("the ranks run", || marked(&mark).len() >= 15);
    kill_process_group(pid(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    nothing_is_left(&mark);
}

#[test]
fn nothing_is_left_when_the_guardian_is_killed() {
    let (child, mark) = start(3, FAMILY);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let guardian = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(guardian, Signal::KILL).unwrap();
    let ended = finish(child);
    assert!(ended.errors().contains("guardian of the ranks was killed by signal 9"), "{}", ended.errors());
    assert_eq!(ended.code(), 137);
    nothing_is_left(&mark);
}

#[test]
fn nothing_is_left_when_a_rank_fails() {
    fail_beside(3, FAMILY);
}

#[test]
fn what_ranks_leave_behind_ends_with_the_job() {
    let mark = mark();
    let script = "setsid sleep 300 >/dev/null 2>&1 & (sleep 0.1; echo late) & exit 0";
    let ended = run(&mut mpiexec(&["-x", &format!("MARK={mark}"), "-n", "2", "sh", "-c", script]));
    assert_eq!((ended.code(), ended.text().as_str()), (0, "late\nlate\n"), "{}", ended.errors());
    assert!(marked(&mark).is_empty());
}

#[test]
fn signals_reach_the_ranks() {
    for (signal, name) in
        [(Signal::USR1, "USR1"), (Signal::USR2, "USR2"), (Signal::HUP, "HUP"), (Signal::TERM, "TERM")]
    {
        let script =
            format!("trap 'echo got {name}; exit 0' {name}; echo ready; while :; do sleep 0.02; done");
        let (child, _) = start(2, &script);
        kill_process(pid(&child), signal).unwrap();
        let ended = finish(child);
        assert_eq!(
            (ended.code(), ended.text()),
            (0, format!("got {name}\ngot {name}\n")),
            "{}",
            ended.errors()
        );
    }
}

#[test]
fn an_interrupt_ends_the_job_and_shows_as_one() {
    let (child, mark) = start(2, "echo ready; exec sleep 50");
    kill_process(pid(&child), Signal::INT).unwrap();
    let ended = finish(child);
    assert_eq!(ended.0.status.signal(), Some(2), "{ended:?}");
    one_line(&ended, "ended by SIGINT");
    assert!(marked(&mark).is_empty());
}

#[test]
fn a_request_to_end_ends_the_job() {
    let (child, _) = start(2, "echo ready; exec sleep 50");
    kill_process(pid(&child), Signal::TERM).unwrap();
    let ended = finish(child);
    assert_eq!(ended.code(), 143);
    one_line(&ended, "ended by SIGTERM");
}

#[test]
fn two_interrupts_kill() {
    let (child, mark) = start(2, "trap '' INT TERM; echo ready; while :; do sleep 0.1; done");
    kill_process(pid(&child), Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(!marked(&mark).is_empty());
    kill_process(pid(&child), Signal::INT).unwrap();
    assert_eq!(finish(child).0.status.signal(), Some(2));
    assert!(marked(&mark).is_empty());
}

#[test]
fn ignored_signals_stay_ignored() {
    // As under nohup.
    let script = format!(
        "trap '' HUP; {} -n 1 sh -c 'kill -HUP $PPID; kill -HUP $$; echo alive'",
        env!("CARGO_BIN_EXE_mpiexec")
    );
    let ended = run(Command::new("sh").args(["-c", &script]));
    assert_eq!((ended.text().as_str(), ended.code()), ("alive\n", 0), "{}", ended.errors());
}

#[test]
fn a_stopped_job_goes_on() {
    let directory = common::Directory::new();
    let file = directory.file("go");
    // Without other programs: a shell whose child is stopped before it has become one waits for it, and is not seen to
    // be stopped itself.
    let script = format!("echo ready; while [ ! -e {} ]; do :; done; echo done", file.display());
    let (child, mark) = start(2, &script);
    let is_stopped = |process: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    kill_process(pid(&child), Signal::TSTP).unwrap();
    await_until("all ranks are stopped", || {
        let processes = marked(&mark);
        processes.len() >= 2 && processes.iter().all(is_stopped)
    });
    std::fs::write(&file, "").unwrap();
    kill_process(pid(&child), Signal::CONT).unwrap();
    let ended = finish(child);
    assert_eq!((ended.code(), ended.text().as_str()), (0, "done\ndone\n"));
}

#[test]
fn a_reader_that_goes_away_ends_the_job_quietly() {
    let mark = mark();
    let script = format!("{} -x MARK={mark} -n 4 yes | head -1", env!("CARGO_BIN_EXE_mpiexec"));
    let ended = run(Command::new("sh").args(["-c", &script]));
    assert_eq!((ended.text().as_str(), ended.errors().as_str()), ("y\n", ""));
    nothing_is_left(&mark);
}

#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = mpiexec(&["-n", "2", "echo", "x"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let ended = finish(child);
    assert_eq!(ended.code(), 1);
    assert!(ended.errors().contains("standard output cannot be written"), "{}", ended.errors());
}

#[test]
fn two_jobs_at_once_do_not_meet() {
    let jobs: Vec<Child> = (0..2)
        .map(|_| mpiexec(&["-n", "3", "sh", "-c", "echo $PARNASS_JOB; sleep 0.1"]))
        .map(|mut command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    let names: Vec<Vec<String>> = jobs.into_iter().map(|job| finish(job).sorted()).collect();
    assert!(names.iter().all(|names| names.len() == 3 && names[0] == names[2]));
    assert_ne!(names[0][0], names[1][0]);
}

#[test]
fn many_jobs_in_a_row_leave_nothing() {
    let named = || {
        let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        files.filter(|file| file.file_name().to_string_lossy().contains("parnass")).count()
    };
    let (before, mark) = (named(), mark());
    let mut names = Vec::new();
    for _ in 0..50 {
        let ended =
            run(&mut mpiexec(&["-x", &format!("MARK={mark}"), "-n", "4", "sh", "-c", "echo $PARNASS_JOB"]));
        assert_eq!(ended.code(), 0);
        names.push(ended.sorted()[3].split(':').next().unwrap().to_owned());
    }
    assert!(marked(&mark).is_empty());
    assert!(named() <= before);
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(names.iter().all(|name| name.starts_with("parnass-") && !sockets.contains(name)), "{sockets}");
}

#[test]
fn ends_are_seen_where_the_parent_ignores_them() {
    let script = format!("trap '' CHLD; {} -n 2 sh -c 'exit 6'; echo $?", env!("CARGO_BIN_EXE_mpiexec"));
    let ended = run(Command::new("sh").args(["-c", &script]));
    assert_eq!(ended.text(), "6\n", "{}", ended.errors());
}

#[test]
fn scripts_run_as_a_shell_runs_them() {
    let directory = common::Directory::new();
    for (text, code, part) in [("echo plain", 0, ""), ("#!/no/such/interpreter\n", 127, "cannot be started")]
    {
        let file = directory.script("script", text);
        let ended = run(&mut mpiexec(&["-n", "2", file.to_str().unwrap()]));
        assert!(ended.errors().contains(part), "{text}: {}", ended.errors());
        assert_eq!(ended.code(), code, "{text}: {}", ended.errors());
    }
}

#[test]
fn a_reader_that_does_not_read_holds_nobody_forever() {
    let mut command = mpiexec(&["-n", "2", "yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    kill_process(pid(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let mut command = mpiexec(&["--timeout", "0.3", "-n", "2", "yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(124));
}
