use super::*;

fn parsed(line: &str) -> Result<Job, String> {
    match parse(line.split_whitespace().map(OsString::from).collect())? {
        Request::Run(job) => Ok(*job),
        other => panic!("{other:?}"),
    }
}

fn error(line: &str) -> String {
    parsed(line).unwrap_err()
}

#[test]
fn both_dashes_and_inline_values_are_one() {
    for line in ["-n 4 a", "--n 4 a", "-np 4 a", "--np 4 a", "--np=4 a", "-n4 a", "-c 4 a"] {
        assert_eq!(parsed(line).unwrap().size(), 4, "{line}");
    }
}

#[test]
fn what_follows_the_program_is_its_own() {
    let job = parsed("-n 2 prog -n 7 --help -x : --label -n 3 other").unwrap();
    assert_eq!(job.parts.len(), 2);
    assert_eq!(job.parts[0].arguments, ["-n", "7", "--help", "-x"]);
    assert_eq!((job.parts[1].ranks, job.label, job.size()), (3, true, 5));
}

#[test]
fn variables_of_a_part_come_after_those_of_all() {
    let job = parsed("-genv A 1 -env A 2 -x B=3=4 prog : -x C= other").unwrap();
    let pairs = |part: usize| -> Vec<String> {
        let set = &job.parts[part].environment.set;
        set.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect()
    };
    assert_eq!(pairs(0), ["A=1", "A=2", "B=3=4"]);
    assert_eq!(pairs(1), ["A=1", "C="]);
}

#[test]
fn the_interface_is_told_to_all_parts() {
    let job = parsed("--interface eth0 a : b").unwrap();
    for part in &job.parts {
        assert_eq!(part.environment.set, [("PARNASS_INTERFACE".into(), "eth0".into())]);
    }
}

#[test]
fn lists_of_variables_limit_what_is_handed_on() {
    let job = parsed("-genvlist A,B prog : -envlist C other : -envnone third").unwrap();
    let only = |part: usize| job.parts[part].environment.only.as_ref().unwrap().len();
    assert_eq!((only(0), only(1), only(2)), (2, 1, 0));
}

#[test]
fn options_of_other_launchers_are_accepted() {
    let line = "--oversubscribe --allow-run-as-root -ppn 2 --map-by core --mca btl self --host localhost:4 a";
    assert!(parsed(line).is_ok());
    assert!(error("--host -x a").contains("'-x' is not the name of a host"));
    assert!(error("--map-by moon a").contains("allowed are slot and node"));
    assert!(error("-ppn 0 a").contains("a number of ranks"));
    assert!(error("--hostfile /no/such/file a").contains("/no/such/file"));
}

#[test]
fn mistakes_are_told_with_what_is_allowed() {
    assert!(error("--labl a").contains("did you mean --label?"));
    assert!(error("--tiemout 3 a").contains("did you mean --timeout?"));
    let strange = error("--zzzzzzzz a");
    assert!(!strange.contains("did you mean") && strange.contains("--wdir"), "{strange}");
    assert!(error("-n 0 a").contains("1 to 65535"));
    assert!(error("-n x a").contains("\"x\""));
    assert!(error("-n").contains("needs RANKS"));
    assert!(error("").contains("no program"));
    assert!(error("-n 2").contains("no program"));
    assert!(error("-n 2 : b").contains("before ':'"));
    assert!(error("a :").contains("no program"));
    assert!(error("--timeout -3 a").contains("above 0"));
    assert!(error("--bind socket a").contains("share, none, core and thread"));
    assert!(error("--label=3 a").contains("takes no value"));
    assert!(error("-n 65535 a : -n 1 b").contains("at most"));
}

#[test]
fn the_help_names_every_option_that_has_one() {
    let help = help();
    for option in OPTIONS.iter().filter(|option| !option.help.is_empty()) {
        assert!(help.contains(&dashed(option.names[0])) && help.contains(option.help));
    }
    assert!(help.lines().all(|line| line.len() <= 110));
}

#[test]
fn a_job_survives_under_the_names_of_all_launchers() {
    for line in [
        "--survive a",
        "--enable-recovery a",
        "-disable-auto-cleanup a",
        "--with-ft ulfm a",
        "--with-ft=mpi a",
    ] {
        assert!(parsed(line).unwrap().survives, "{line}");
    }
    assert!(!parsed("--with-ft none a").unwrap().survives && !parsed("a").unwrap().survives);
    assert!(error("--with-ft some a").contains("allowed are ulfm and none"));
}
