//! What a user sees of jobs that go well, and of wrong command lines.

mod common;

use common::{Directory, finish, mpiexec, run, run_with_input, shell};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

#[test]
fn ranks_know_their_place() {
    let ended = shell(3, "echo $PARNASS_RANK of $PARNASS_SIZE");
    assert_eq!(ended.sorted(), ["0 of 3", "1 of 3", "2 of 3"]);
    assert_eq!((ended.code(), ended.errors().as_str()), (0, ""));
}

#[test]
fn parts_follow_one_another() {
    let script = "echo $PARNASS_RANK $PARNASS_SIZE $A $B";
    let line = [
        "-genv", "A", "1", "-n", "2", "sh", "-c", script, ":", "-env", "B", "2", "-x", "A=3", "sh", "-c",
        script,
    ];
    assert_eq!(run(&mut mpiexec(&line)).sorted(), ["0 3 1", "1 3 1", "2 3 3 2"]);
}

#[test]
fn variables_can_be_limited() {
    let mut command = mpiexec(&["-envlist", "KEPT", "sh", "-c", "echo $KEPT:$LOST"]);
    let ended = run(command.env("KEPT", "yes").env("LOST", "no"));
    assert_eq!(ended.text(), "yes:\n");
}

#[test]
fn the_working_directory_is_entered_and_searched() {
    let directory = Directory::new();
    directory.script("where", "#!/bin/sh\npwd\n");
    let path = directory.0.to_str().unwrap();
    for name in ["./where", "where"] {
        let ended = run(&mut mpiexec(&["-n", "2", "-wdir", path, name]));
        assert_eq!(ended.text(), format!("{path}\n{path}\n"), "{name}: {}", ended.errors());
    }
}

#[test]
fn wrong_command_lines_are_explained() {
    let directory = Directory::new();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["-n", "2", "/no/such/program"], 127, "there is no program /no/such/program"),
        (&["-n", "2", "no-such-program"], 127, "neither in PATH nor"),
        (&["/etc/passwd"], 126, "not executable"),
        (&["/etc"], 126, "is a directory"),
        (&["-wdir", "/no/such/place", "true"], 1, "working directory /no/such/place does not exist"),
        (&["--labell", "true"], 2, "did you mean --label?"),
        (&["-n", "0", "true"], 2, "1 to 65535"),
        (&["-n", "2"], 2, "no program is given"),
        (&["-host", "else where", "true"], 2, "is not the name of a host"),
    ];
    for (arguments, code, part) in cases {
        let ended = run(mpiexec(arguments).current_dir(&directory.0));
        assert!(ended.errors().contains(part), "{arguments:?}: {}", ended.errors());
        assert!(ended.errors().starts_with("mpiexec: ") && ended.text().is_empty(), "{arguments:?}");
        assert_eq!(ended.code(), code, "{arguments:?}");
    }
}

#[test]
fn help_and_version_are_told() {
    let help = run(&mut mpiexec(&["--help"]));
    assert!(help.text().contains("usage: mpiexec") && help.code() == 0);
    assert!(run(&mut mpiexec(&["--version"])).text().contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn standard_input_reaches_rank_0_bit_for_bit() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let bytes: Vec<u8> = (0..50 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    let ended = run_with_input(&mut mpiexec(&["-n", "2", "cat"]), bytes.clone());
    assert_eq!(ended.code(), 0, "{}", ended.errors());
    assert!(ended.0.stdout == bytes, "{} bytes of {}", ended.0.stdout.len(), bytes.len());
}

#[test]
fn input_need_not_be_read() {
    let ended = run_with_input(&mut mpiexec(&["-n", "2", "true"]), vec![b'x'; 1 << 20]);
    assert_eq!(ended.code(), 0);
    // A program that reads one line leaves the rest to the next one, as without mpiexec.
    let directory = Directory::new();
    let file = directory.file("input");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let script = format!(
        "( {} -n 1 sh -c 'read a; echo $a'; cat ) < {}",
        env!("CARGO_BIN_EXE_mpiexec"),
        file.display()
    );
    let ended = run(std::process::Command::new("sh").args(["-c", &script]));
    assert_eq!(ended.text(), "one\ntwo\n");
}

#[test]
fn closed_descriptors_do_no_harm() {
    let mpiexec = env!("CARGO_BIN_EXE_mpiexec");
    for closing in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("{mpiexec} -n 2 true {closing}");
        let ended = run(std::process::Command::new("sh").args(["-c", &script]));
        assert_eq!(ended.code(), 0, "{closing}");
    }
}

#[test]
fn a_terminal_is_read_for_rank_0() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let name = name.to_str().unwrap();
    // setsid gives the job a session of its own, and opening the terminal there makes it the controlling one.
    let script =
        format!("exec <{name}; {} -n 2 sh -c 'read a && echo got $a'", env!("CARGO_BIN_EXE_mpiexec"));
    let child = std::process::Command::new("setsid")
        .args(["-w", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut master = std::fs::File::from(master);
    master.write_all(b"typed words\n").unwrap();
    let ended = finish(child);
    // Rank 1 reads nothing and fails; which of the two is seen first is open.
    assert!(ended.text() == "got typed words\n" || ended.code() == 1, "{ended:?}");
}

#[test]
fn lines_of_ranks_stay_whole() {
    let script = "i=0; while [ $i -lt 2000 ]; do printf '%s-' $PARNASS_RANK $PARNASS_RANK; echo $PARNASS_RANK; i=$((i+1)); done";
    for options in [&["-n", "4"][..], &["-l", "-n", "4"]] {
        let ended = run(&mut mpiexec(&[options, &["sh", "-c", script]].concat()));
        let text = ended.text();
        let mut counts = [0; 4];
        for line in text.lines() {
            let line = if options.len() == 3 {
                let (label, line) = line.split_once("] ").expect("a label");
                assert_eq!(label[1..], line[..1]);
                line
            } else {
                line
            };
            let rank: usize = line[..1].parse().unwrap();
            assert_eq!(line, format!("{rank}-{rank}-{rank}"));
            counts[rank] += 1;
        }
        assert_eq!(counts, [2000; 4]);
    }
}

#[test]
fn output_and_errors_together_stay_whole_too() {
    let inner =
        "i=0; while [ $i -lt 500 ]; do echo out$PARNASS_RANK; echo err$PARNASS_RANK >&2; i=$((i+1)); done";
    let script = format!("{} -n 3 sh -c '{inner}' 2>&1", env!("CARGO_BIN_EXE_mpiexec"));
    let ended = run(std::process::Command::new("sh").args(["-c", &script]));
    let lines = ended.sorted();
    assert_eq!(lines.len(), 3000);
    assert!(lines.iter().all(|line| line.len() == 4), "{lines:?}");
}

#[test]
fn unfinished_lines_are_shown() {
    let ended = shell(1, "printf 'no newline'");
    assert_eq!(ended.text(), "no newline");
    // While the rank goes on, too.
    let mut child = mpiexec(&["sh", "-c", "printf 'prompt> '; read a; echo $a"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut shown).unwrap();
    assert_eq!(&shown, b"prompt> ");
    child.stdin.as_mut().unwrap().write_all(b"answer\n").unwrap();
    assert_eq!(finish(child).text(), "answer\n");
}

#[test]
fn very_long_lines_and_any_bytes_pass() {
    let ended = shell(1, "head -c 5000000 /dev/zero; echo; printf '\\377\\000\\n'");
    assert_eq!(ended.0.stdout.len(), 5_000_004);
    assert!(ended.0.stdout.ends_with(b"\0\n\xff\0\n"));
}

#[test]
fn a_file_per_rank_and_stream() {
    let directory = Directory::new();
    let place = directory.file("a/b");
    let path = place.to_str().unwrap();
    let ended =
        run(&mut mpiexec(&["--output", path, "-n", "11", "sh", "-c", "echo o$PARNASS_RANK; echo e >&2"]));
    assert_eq!((ended.code(), ended.text().as_str(), ended.errors().as_str()), (0, "", ""));
    assert_eq!(std::fs::read_to_string(place.join("rank.07.out")).unwrap(), "o7\n");
    assert_eq!(std::fs::read_to_string(place.join("rank.10.err")).unwrap(), "e\n");
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 22);
    let ended = run(&mut mpiexec(&["--output", "/dev/null/x", "true"]));
    assert!(ended.code() == 1 && ended.errors().contains("--output /dev/null/x"), "{ended:?}");
}

#[test]
fn sixty_four_ranks() {
    let ended = shell(64, "echo $PARNASS_RANK");
    assert_eq!(ended.text().lines().count(), 64);
    assert_eq!(ended.code(), 0);
}

#[test]
fn a_rank_may_run_mpiexec() {
    let inner = format!("{} -n 2 sh -c 'echo $PARNASS_RANK/$PARNASS_SIZE'", env!("CARGO_BIN_EXE_mpiexec"));
    let ended = shell(3, &inner);
    assert_eq!(ended.sorted(), ["0/2", "0/2", "0/2", "1/2", "1/2", "1/2"], "{}", ended.errors());
    assert_eq!(ended.code(), 0);
}

#[test]
fn more_ranks_than_cores_are_not_bound() {
    let ended = run(&mut mpiexec(&["--bind", "core", "-n", "1000", "true"]));
    assert!(ended.errors().contains("not bound: 1000 ranks on"), "{}", ended.errors());
    assert_eq!(ended.code(), 0);
}

#[test]
fn a_slow_reader_slows_the_ranks() {
    let mut child = mpiexec(&["-n", "2", "sh", "-c", "yes | head -c 30000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let guardian =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
    let status = std::fs::read_to_string(format!("/proc/{}/status", guardian.trim())).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    if let Some(kilobytes) = resident {
        assert!(kilobytes.parse::<u32>().unwrap() < 20_000, "{kilobytes} kB");
    }
    let mut bytes = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 60_000_000);
    assert_eq!(finish(child).code(), 0);
}

#[test]
fn output_to_a_socket() {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let child = mpiexec(&["-n", "2", "sh", "-c", "head -c 1000000 /dev/zero"])
        .stdout(OwnedFd::from(far))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut bytes = Vec::new();
    let mut near = near;
    near.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 2_000_000);
    assert_eq!(finish(child).code(), 0);
    let _ = near.as_fd();
}

#[test]
fn bound_jobs_do_not_share_a_core() {
    let place = "grep Cpus_allowed_list /proc/self/status | cut -f2; sleep 0.5";
    let jobs: Vec<_> = (0..2)
        .map(|_| mpiexec(&["--bind", "thread", "sh", "-c", place]))
        .map(|mut command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    let ended: Vec<_> = jobs.into_iter().map(finish).collect();
    // Where processors are few, or jobs of others hold them, a job says that it is not bound.
    let bound = ended.iter().filter(|ended| !ended.errors().contains("other bound jobs hold too many"));
    let mut places: Vec<u32> =
        bound.map(|ended| ended.text().trim().parse().expect("one processor")).collect();
    let count = places.len();
    places.dedup();
    assert_eq!(places.len(), count);
}

#[test]
fn ranks_have_shares_of_the_cores_that_do_not_overlap() {
    let place = "grep Cpus_allowed_list /proc/self/status | cut -f2";
    let own = std::process::Command::new("sh").args(["-c", place]).output().unwrap();
    let own = String::from_utf8(own.stdout).unwrap().trim().to_owned();
    let of_ranks = |options: &[&str]| run(&mut mpiexec(&[options, &["sh", "-c", place]].concat())).sorted();
    // Where cores are few, or other jobs hold them, ranks run where they like.
    let shares = of_ranks(&["-n", "2"]);
    assert!(shares[0] != shares[1] || shares == [own.as_str(), own.as_str()], "{shares:?} of {own}");
    assert_eq!(of_ranks(&["-n", "1"]), [own.as_str()]);
    assert_eq!(of_ranks(&["-n", "2", "--bind", "none"]), [own.as_str(), own.as_str()]);
    // Those that outnumber the cores are dealt out evenly.
    let dealt = of_ranks(&["-n", "300"]);
    let mut places = dealt.clone();
    places.dedup();
    assert!(
        places.iter().all(|place| dealt.iter().filter(|other| *other == place).count() == 300 / places.len())
    );
    assert_eq!(of_ranks(&["-n", "300", "--bind", "none"]), vec![own; 300]);
}
