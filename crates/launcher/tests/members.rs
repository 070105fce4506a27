//! Processes that join a job, as MPI programs do. The test program itself is what mpiexec starts: with
//! `MEMBER` in its environment, the test [`member`] acts as a rank.

mod common;

use common::{Ended, await_until, finish, mark, marked, mpiexec, run};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Acts as `MEMBER` says; does nothing as a test.
#[test]
fn member() {
    let Ok(role) = std::env::var("MEMBER") else { return };
    let membership = match parnass_bootstrap::join(parnass_transport_shm::JobMemory::create) {
        Ok(membership) => membership,
        Err(error) => {
            eprintln!("refused: {error}");
            std::process::exit(99);
        }
    };
    let fields = (membership.rank, membership.size, membership.app_number, membership.job_memory.is_some());
    println!("joined {fields:?}");
    std::io::stdout().flush().unwrap();
    let chosen = membership.rank == 1 || membership.size == 1;
    match role.as_str() {
        "finish" => {}
        "abort" if chosen => membership.launcher().abort(42, "the cheese is out"),
        "abort-silently" if chosen => membership.launcher().abort(256, ""),
        "exchange" => {
            for round in 0..3u32 {
                let part = vec![membership.rank as u8; (membership.rank * 1000 + round) as usize];
                let parts = membership.exchange(&part).unwrap();
                assert_eq!(parts.len() as u32, membership.size);
                for (rank, part) in parts.iter().enumerate() {
                    assert_eq!(part, &vec![rank as u8; rank * 1000 + round as usize]);
                }
            }
            let place = (membership.rank, membership.node_of(membership.rank), membership.local_rank);
            let keys = membership.exchange(membership.key()).unwrap();
            assert!(keys.iter().all(|key| key == membership.key() && *key != [0; 32]));
            println!("exchanged {place:?} of {}", membership.local_size);
        }
        "leave" if chosen => std::process::exit(0),
        "crash" if chosen => std::process::abort(),
        "fail-after" if chosen => {
            membership.launcher().finalized();
            std::process::exit(7);
        }
        "fail-after" => std::thread::sleep(Duration::from_millis(300)),
        _ => std::thread::sleep(Duration::from_secs(50)),
    }
    membership.launcher().finalized();
    println!("finished");
    std::process::exit(0);
}

/// The words that start [`member`].
fn member_words() -> [String; 4] {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    [program, "--exact".into(), "member".into(), "--nocapture".into()]
}

fn job(ranks: &str, role: &str) -> Command {
    let words = member_words();
    let role = format!("MEMBER={role}");
    let mut arguments = vec!["-x", &role, "-n", ranks];
    arguments.extend(words.iter().map(String::as_str));
    mpiexec(&arguments)
}

/// `mpiexec` on a shell whose `$M` starts [`member`].
fn wrapped(ranks: &str, role: &str, script: &str) -> Ended {
    let (role, program) = (format!("MEMBER={role}"), format!("M={}", member_words().join(" ")));
    run(&mut mpiexec(&["-x", &role, "-x", &program, "-n", ranks, "sh", "-c", script]))
}

fn joined(ended: &Ended) -> usize {
    ended.text().matches("joined").count()
}

#[test]
fn ranks_join() {
    let ended = run(&mut job("3", "finish"));
    assert_eq!(ended.code(), 0, "{}", ended.errors());
    for rank in 0..3 {
        assert!(ended.text().contains(&format!("joined ({rank}, 3, 0, true)")), "{}", ended.text());
    }
}

#[test]
fn ranks_exchange() {
    let ended = run(&mut job("5", "exchange"));
    assert_eq!(ended.code(), 0, "{}", ended.errors());
    for rank in 0..5 {
        assert!(ended.text().contains(&format!("exchanged ({rank}, 0, {rank}) of 5")), "{}", ended.text());
    }
}

#[test]
fn a_grandchild_joins_through_a_shell_that_closes_descriptors() {
    let ended = wrapped("2", "finish", "exec 3>&- 4>&- 5>&- 6>&- 7>&-; (cd /; $M; exit $?); exit $?");
    assert_eq!((ended.code(), joined(&ended)), (0, 2), "{}{}", ended.text(), ended.errors());
}

#[test]
fn programs_may_follow_one_another() {
    let ended = wrapped("2", "finish", "$M && $M && $M");
    assert_eq!((ended.code(), joined(&ended)), (0, 6), "{}{}", ended.text(), ended.errors());
}

#[test]
fn a_rank_is_given_once() {
    let ended = wrapped("1", "stay", "$M & sleep 0.3; $M; exit 0");
    assert!(ended.errors().contains("refused: rank 0 of this job is process"), "{}", ended.errors());
    assert_eq!(joined(&ended), 1);
}

#[test]
fn an_abort_gives_message_and_code() {
    let ended = run(&mut job("3", "abort"));
    assert_eq!(ended.code(), 42);
    let errors = ended.errors();
    assert!(
        errors.contains("rank 1 (") && errors.contains("): the cheese is out; ending 2 other ranks"),
        "{errors}"
    );
    // A rank that comes after that is refused, and says so itself.
    let said_by_mpiexec = errors.lines().filter(|line| *line != "refused: the job is ending");
    assert_eq!(said_by_mpiexec.count(), 1, "{errors}");
    let ended = run(&mut job("2", "abort-silently"));
    assert_eq!(ended.code(), 1);
    assert!(ended.errors().contains("called MPI_Abort with code 256"), "{}", ended.errors());
}

#[test]
fn leaving_without_finalize_is_an_error() {
    let ended = run(&mut job("3", "leave"));
    assert_eq!(ended.code(), 1);
    assert!(ended.errors().contains("exited with code 0 without calling MPI_Finalize"), "{}", ended.errors());
    // Seen also where a shell goes on after the program.
    let ended = wrapped("2", "leave", "$M; exec sleep 50");
    assert_eq!(ended.code(), 1);
    assert!(ended.errors().contains("ended without MPI_Finalize"), "{}", ended.errors());
    // And where the shell hides that the program was killed.
    let ended = wrapped("2", "crash", "$M; exit 0");
    assert_eq!(ended.code(), 1);
    assert!(ended.errors().contains("ended without MPI_Finalize"), "{}", ended.errors());
}

#[test]
fn a_crash_ends_the_others() {
    let ended = run(&mut job("3", "crash"));
    assert_eq!(ended.code(), 134);
    assert!(ended.errors().contains("signal 6 (SIGABRT"), "{}", ended.errors());
}

#[test]
fn a_failure_after_finalize_counts_and_disturbs_nobody() {
    let ended = run(&mut job("3", "fail-after"));
    assert_eq!(ended.code(), 7);
    assert_eq!(ended.text().matches("finished").count(), 2, "{}", ended.text());
}

#[test]
fn members_die_with_mpiexec_and_its_guardian() {
    let mark = mark();
    let mut command = job("3", "stay");
    let mut child = command.env("MARK", &mark).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    await_until("all ranks run", || marked(&mark).len() == 5);
    // Both at once, so that nobody is left to clean up.
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let guardian = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    let front = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(front, Signal::STOP).unwrap();
    kill_process(guardian, Signal::KILL).unwrap();
    kill_process(front, Signal::KILL).unwrap();
    child.wait().unwrap();
    await_until("all ranks are gone", || marked(&mark).is_empty());
}

#[test]
fn alone_is_a_world_of_one() {
    let words = member_words();
    let child = Command::new(&words[0])
        .args(&words[1..])
        .env("MEMBER", "finish")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = finish(child);
    assert!(ended.text().contains("joined (0, 1, -1, false)"), "{ended:?}");
}

#[test]
fn a_job_within_a_rank_is_a_job_of_its_own() {
    let inner = format!("{} -n 2 $M", env!("CARGO_BIN_EXE_mpiexec"));
    let ended = wrapped("2", "finish", &inner);
    assert_eq!((ended.code(), joined(&ended)), (0, 4), "{}", ended.errors());
    assert_eq!(ended.text().matches("joined (1, 2,").count(), 2, "{}", ended.text());
}

#[test]
fn a_launcher_that_is_gone_is_told() {
    // A program that outlives its job, by the variables of the job.
    let ended = run(&mut mpiexec(&["sh", "-c", "echo $PARNASS_JOB"]));
    let words = member_words();
    let child = Command::new(&words[0])
        .args(&words[1..])
        .env("MEMBER", "finish")
        .env("PARNASS_JOB", ended.text().trim())
        .env("PARNASS_RANK", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = finish(child);
    assert_eq!(ended.code(), 99);
    assert!(ended.errors().contains("is gone"), "{}", ended.errors());
}

#[test]
fn a_wrong_secret_is_refused() {
    // Another last digit than the secret has, whichever that is.
    let script = "other=$(printf %s \"${PARNASS_JOB#${PARNASS_JOB%?}}\" | tr 0-9a-f 1-9a-f0); PARNASS_JOB=${PARNASS_JOB%?}$other $M; exit 0";
    let ended = wrapped("1", "finish", script);
    assert!(
        ended.errors().contains("refused: PARNASS_JOB or PARNASS_RANK was changed"),
        "{}",
        ended.errors()
    );
}

#[test]
fn sixty_four_ranks_join() {
    let ended = run(&mut job("64", "finish"));
    assert_eq!((ended.code(), joined(&ended)), (0, 64), "{}", ended.errors());
}
