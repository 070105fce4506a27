//! Jobs over several nodes, each with an agent of its own, all on this machine. The test program itself is what
//! `mpiexec` starts: with `MEMBER` in its environment, the test [`member`] acts as a rank.

mod common;

use common::{Ended, await_until, finish, mark, marked, mpiexec, nothing_is_left, run, run_with_input};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Acts as `MEMBER` says; does nothing as a test.
#[test]
fn member() {
    let Ok(role) = std::env::var("MEMBER") else { return };
    let membership = parnass_bootstrap::join(parnass_transport_shm::JobMemory::create).unwrap();
    let rank = membership.rank;
    match role.as_str() {
        "exchange" => {
            for round in 0..3u32 {
                let part = vec![rank as u8; (rank * 700 + round) as usize];
                let parts = membership.exchange(&part).unwrap();
                assert_eq!(parts.len() as u32, membership.size);
                for (rank, part) in parts.iter().enumerate() {
                    assert_eq!(part, &vec![rank as u8; rank * 700 + round as usize]);
                }
            }
            let keys = membership.exchange(membership.key()).unwrap();
            assert!(keys.iter().all(|key| key == membership.key() && *key != [0; 32]));
            let node = membership.node_of(rank);
            let place = (rank, membership.local_rank, membership.local_size);
            println!("{place:?} on {}", membership.nodes.name(node));
        }
        "abort" if rank == 1 => membership.launcher().abort(42, "the cheese is out"),
        "crash" if rank == 1 => std::process::abort(),
        "exchange-without-one" if rank == 1 => std::process::exit(0),
        "exchange-without-one" => drop(membership.exchange(b"part")),
        _ => std::thread::sleep(Duration::from_secs(50)),
    }
    membership.launcher().finalized();
    std::process::exit(0);
}

fn nodes(options: &[&str], hosts: &str, program: &[&str]) -> Command {
    let mut arguments = vec!["--starter", "local", "--host", hosts];
    arguments.extend(options);
    arguments.extend(program);
    mpiexec(&arguments)
}

fn shell(options: &[&str], hosts: &str, script: &str) -> Ended {
    run(&mut nodes(options, hosts, &["sh", "-c", script]))
}

fn members(options: &[&str], hosts: &str, role: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let role = format!("MEMBER={role}");
    let mut all = vec!["-x", role.as_str()];
    all.extend(options);
    nodes(&all, hosts, &[program.to_str().unwrap(), "--exact", "member", "--nocapture"])
}

/// Starts ranks that say "ready" and gives the running job once all have.
fn start(mut command: Command, ranks: usize, mark: &str) -> Child {
    let mut child = command.env("MARK", mark).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..ranks {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{:?}", finish(child));
    }
    child.stdout = Some(reader.into_inner());
    child
}

/// The process of that name among the marked ones that has `word` in its command line or is an agent's guardian.
fn named(mark: &str, name: &str) -> Vec<i32> {
    let is_named = |process: &i32| {
        std::fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    marked(mark).into_iter().filter(is_named).collect()
}

fn signal(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

#[test]
fn ranks_know_their_nodes_and_exchange() {
    for options in [&[][..], &["--fan-out", "1"], &["--fan-out", "2"]] {
        let ended = run(&mut members(options, "a:2,b:1,c:2,d:1", "exchange"));
        assert_eq!(ended.code(), 0, "{options:?}: {}{}", ended.errors(), ended.text());
        for line in ["(0, 0, 2) on a", "(1, 1, 2) on a", "(2, 0, 1) on b", "(4, 1, 2) on c", "(5, 0, 1) on d"]
        {
            assert!(ended.text().contains(line), "{options:?}: {}", ended.text());
        }
    }
    let ended = run(&mut members(&["--map-by", "node"], "a:2,b:2", "exchange"));
    for line in ["(0, 0, 2) on a", "(1, 0, 2) on b", "(2, 1, 2) on a", "(3, 1, 2) on b"] {
        assert!(ended.text().contains(line), "{}{}", ended.text(), ended.errors());
    }
}

#[test]
fn output_is_labelled_and_in_lines() {
    let ended = shell(&["-l"], "a:1,b:2", "echo out $PARNASS_LOCAL_RANK; echo err >&2");
    assert_eq!(ended.code(), 0, "{}", ended.errors());
    assert_eq!(ended.sorted(), ["[0] out 0", "[1] out 0", "[2] out 1"]);
    let mut errors: Vec<String> = ended.errors().lines().map(str::to_owned).collect();
    errors.sort();
    assert_eq!(errors, ["[0] err", "[1] err", "[2] err"]);
}

#[test]
fn much_output_arrives_whole() {
    for options in [&[][..], &["--fan-out", "1"]] {
        let ended = shell(options, "a:1,b:1,c:1", "seq -f \"$PARNASS_RANK %09.0f\" 200000");
        assert_eq!(ended.code(), 0, "{}", ended.errors());
        for rank in 0..3 {
            let begin = format!("{rank} ");
            let text = ended.text();
            let numbers =
                text.lines().filter_map(|line| line.strip_prefix(&begin)).map(|line| line.parse::<u32>());
            assert!(numbers.eq((1..=200_000).map(Ok)), "rank {rank}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_job_quietly() {
    let mark = mark();
    let script =
        format!("{} --starter local --host a,b -x MARK={mark} yes | head -1", env!("CARGO_BIN_EXE_mpiexec"));
    let ended = run(Command::new("sh").args(["-c", &script]));
    assert_eq!((ended.text().as_str(), ended.errors().as_str()), ("y\n", ""));
    nothing_is_left(&mark);
}

#[test]
fn input_goes_to_rank_nought() {
    let input: Vec<u8> = (0..3_000_000u32).map(|index| (index % 251) as u8).collect();
    for options in [&[][..], &["--fan-out", "1"]] {
        let mut command = nodes(options, "a:1,b:1", &["sh", "-c", "cat | cksum"]);
        let ended = run_with_input(&mut command, input.clone());
        let alone = run_with_input(&mut Command::new("cksum"), input.clone());
        let mut lines = [alone.text().trim().to_owned(), "4294967295 0".to_owned()];
        lines.sort();
        assert_eq!(ended.sorted(), lines, "{}", ended.errors());
    }
    let ended = run_with_input(&mut nodes(&[], "a,b", &["true"]), input);
    assert_eq!(ended.code(), 0, "{}", ended.errors());
}

#[test]
fn a_failure_names_its_host_and_ends_all() {
    let mark = mark();
    let mark_variable = format!("MARK={mark}");
    let script = "[ $PARNASS_RANK = 2 ] && { sleep 0.2; exit 7; }; sleep 300 & wait";
    let ended = shell(&["-x", &mark_variable], "a:2,b:2", script);
    assert_eq!(ended.code(), 7);
    let errors = ended.errors();
    assert!(
        errors.contains("rank 2 (sh, process") && errors.contains(" on b) exited with code 7"),
        "{errors}"
    );
    assert!(errors.contains("ending 3 other ranks"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    nothing_is_left(&mark);
}

#[test]
fn members_that_end_badly_end_all() {
    let ended = run(&mut members(&[], "a,b,c", "abort"));
    assert_eq!(ended.code(), 42, "{}", ended.errors());
    assert!(ended.errors().contains(" on b): the cheese is out; ending 2 other ranks"), "{}", ended.errors());
    let ended = run(&mut members(&[], "a,b,c", "crash"));
    assert_eq!(ended.code(), 134, "{}", ended.errors());
    let ended = run(&mut members(&[], "a,b,c", "exchange-without-one"));
    assert_eq!(ended.code(), 1);
    assert!(ended.errors().contains("without calling MPI_Finalize"), "{}", ended.errors());
}

#[test]
fn signals_reach_the_ranks() {
    for (sent, name) in [(Signal::USR1, "USR1"), (Signal::TERM, "TERM")] {
        let script =
            format!("trap 'echo got {name}; exit 0' {name}; echo ready; while :; do sleep 0.02; done");
        let mark = mark();
        let child = start(nodes(&[], "a:1,b:1", &["sh", "-c", &script]), 2, &mark);
        signal(child.id() as i32, sent);
        let ended = finish(child);
        assert_eq!(
            (ended.code(), ended.text()),
            (0, format!("got {name}\ngot {name}\n")),
            "{}",
            ended.errors()
        );
        nothing_is_left(&mark);
    }
    let mark = mark();
    let child = start(nodes(&[], "a:1,b:1", &["sh", "-c", "echo ready; exec sleep 50"]), 2, &mark);
    signal(child.id() as i32, Signal::INT);
    let ended = finish(child);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(ended.0.status.signal(), Some(2), "{ended:?}");
    nothing_is_left(&mark);
}

#[test]
fn a_time_limit_ends_all() {
    let mark = mark();
    let mark_variable = format!("MARK={mark}");
    let ended = shell(
        &["--timeout", "0.7", "-x", &mark_variable],
        "a,b",
        "trap '' TERM; sleep 300 & wait; sleep 300",
    );
    assert_eq!(ended.code(), 124, "{}", ended.errors());
    assert!(ended.errors().contains("time limit"), "{}", ended.errors());
    nothing_is_left(&mark);
}

#[test]
fn killed_processes_of_ours_leave_nothing() {
    let script = "setsid sleep 300 & echo ready; wait";
    // mpiexec, its guardian, an agent, an agent's guardian.
    for victim in ["mpiexec", "parnass-guard", "agent", "parnass-agent"] {
        let mark = mark();
        let child = start(nodes(&[], "a:1,b:1", &["sh", "-c", script]), 2, &mark);
        let front = child.id() as i32;
        let process = match victim {
            "mpiexec" => front,
            "agent" => named(&mark, "mpiexec").into_iter().find(|&process| process != front).unwrap(),
            name => named(&mark, name)[0],
        };
        signal(process, Signal::KILL);
        let ended = finish(child);
        assert!(!ended.0.status.success(), "{victim}");
        if victim.contains("agent") {
            let errors = ended.errors();
            assert!(errors.contains("the agent on ") && errors.contains(" is lost"), "{victim}: {errors}");
        }
        await_until("nothing is left", || marked(&mark).is_empty());
    }
}

#[test]
fn a_frozen_agent_is_given_up() {
    let mark = mark();
    let child = start(nodes(&[], "a:1,b:1", &["sh", "-c", "echo ready; exec sleep 300"]), 2, &mark);
    signal(named(&mark, "parnass-agent")[1], Signal::STOP);
    let ended = finish(child);
    assert_eq!(ended.code(), 1, "{}", ended.errors());
    assert!(ended.errors().contains("has not answered for 10 s"), "{}", ended.errors());
    await_until("nothing is left", || marked(&mark).is_empty());
}

#[test]
fn a_frozen_agent_is_not_waited_for_to_say_what_its_ranks_do() {
    let mark = mark();
    let script = "echo ready; exec sleep 300";
    let child = start(nodes(&["--timeout", "1"], "a:1,b:1", &["sh", "-c", script]), 2, &mark);
    let frozen = named(&mark, "parnass-agent")[1];
    signal(frozen, Signal::STOP);
    let ended = finish(child);
    assert_eq!(ended.code(), 124);
    let lines: Vec<String> = ended.errors().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().any(|line| line.ends_with(": before MPI_Init")), "{lines:?}");
    assert!(lines.iter().any(|line| line.ends_with(": unknown: the host does not answer")), "{lines:?}");
    await_until("nothing is left", || marked(&mark).is_empty());
}

#[test]
fn nothing_starts_where_one_host_cannot() {
    let directory = common::Directory::new();
    let file = directory.file("started");
    let script = format!("touch {}", file.display());
    let starter = "sh -c {command} {host}";
    let ended_well = run(&mut mpiexec(&["--starter", starter, "--host", "a,b", "sh", "-c", &script]));
    assert_eq!(ended_well.code(), 0, "{}", ended_well.errors());
    assert!(file.exists());
    std::fs::remove_file(&file).unwrap();
    let ended = run(&mut mpiexec(&["--starter", "false {host}", "--host", "a,b", "sh", "-c", &script]));
    assert_eq!(ended.code(), 1);
    let errors = ended.errors();
    assert!(
        errors.contains("no agent could be started on ") && errors.contains("exited with code 1"),
        "{errors}"
    );
    // Whichever host's starter was heard first.
    assert!(
        ["the command: false a", "the command: false b"].iter().any(|told| errors.contains(told)),
        "{errors}"
    );
    let ended = run(&mut nodes(&[], "a,b", &["./no-such-program"]));
    assert_eq!(ended.code(), 127);
    assert!(
        ended.errors().contains("a: there is no program ./no-such-program")
            || ended.errors().contains("b: there"),
        "{}",
        ended.errors()
    );
    assert!(!file.exists());
}

#[test]
fn what_a_starter_says_is_told_when_it_fails() {
    let directory = common::Directory::new();
    let script = directory.script("starter", "#!/bin/sh\necho connect to $1: nobody there >&2\nexit 255\n");
    let starter = format!("{} {{host}}", script.display());
    let ended = run(&mut mpiexec(&["--starter", &starter, "--host", "b:2", "true"]));
    assert_eq!(ended.code(), 1);
    let errors = ended.errors();
    for part in
        ["on b: its starter exited with code 255", "it said: connect to b: nobody there", "the command: "]
    {
        assert!(errors.contains(part), "{errors}");
    }
    // Another program in the place of the agent.
    let ended =
        run(&mut mpiexec(&["--starter", "echo parnass-agent 999 7.7.7 {host}", "--host", "b", "true"]));
    assert!(ended.errors().contains("it is of Parnass 7.7.7 and mpiexec of"), "{}", ended.errors());
}

#[test]
fn files_are_written_where_the_ranks_are() {
    let directory = common::Directory::new();
    let output = directory.file("out");
    let ended = shell(&["--output", output.to_str().unwrap()], "a,b", "echo $PARNASS_RANK");
    assert_eq!(ended.code(), 0, "{}", ended.errors());
    for rank in 0..2 {
        let text = std::fs::read_to_string(output.join(format!("rank.{rank}.out"))).unwrap();
        assert_eq!(text, format!("{rank}\n"));
    }
}

#[test]
fn many_jobs_in_a_row_leave_nothing() {
    let mark = mark();
    let mark_variable = format!("MARK={mark}");
    for _ in 0..10 {
        let ended = shell(&["-x", &mark_variable], "a:2,b:2,c:2", "echo $PARNASS_RANK");
        assert_eq!((ended.code(), ended.sorted().concat()), (0, "012345".to_owned()), "{}", ended.errors());
    }
    assert!(marked(&mark).is_empty());
}
