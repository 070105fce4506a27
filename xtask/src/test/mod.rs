//! `cargo xtask test`: every check there is, in stages, with one count at the end.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;

mod cargo;
mod clients;
mod mpich_abi;
mod packages;
mod runner;
mod table;
mod tally;

use tally::{Tally, Verdict};

/// The stages in their order. Later ones need what `dist` installs.
const STAGES: &[&str] =
    &["fmt", "clippy", "tidy", "codegen", "unit", "loom", "tsan", "dist", "programs", "benches", "clients"];

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Options {
    /// Run only the multi-process and client tests whose names contain this; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Run only this stage; may be given more than once
    #[arg(long, value_name = "STAGE", value_parser = clap::builder::PossibleValuesParser::new(STAGES))]
    stage: Vec<String>,
    /// List the multi-process and client tests and run nothing
    #[arg(long)]
    list: bool,
    /// Give up after this many minutes, and say what was running
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..))]
    within: Option<u64>,
    /// Run the long forms too
    #[arg(long)]
    full: bool,
    /// Test this installation instead of building one
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Only mpi4py's test modules that match this regular expression
    #[arg(long, value_name = "REGEX")]
    modules: Option<String>,
}

/// Runs what the options ask for; an error means that something failed.
pub fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    if options.list {
        return list(root);
    }
    let narrowed = !options.only.is_empty();
    let asked = |stage: &str| {
        if !options.stage.is_empty() {
            // What is installed is needed by the stages that run programs.
            return options.stage.iter().any(|name| name == stage)
                || (stage == "dist" && options.stage.iter().any(|name| runs_programs(name)));
        }
        (!narrowed && (stage != "tsan" || options.full))
            || stage == "dist"
            || stage == "programs"
            || stage == "clients"
    };
    let unmet: RefCell<BTreeSet<&str>> = RefCell::new(options.only.iter().map(String::as_str).collect());
    let wanted = |name: &str| {
        unmet.borrow_mut().retain(|part| !name.contains(part));
        !narrowed || options.only.iter().any(|part| name.contains(part.as_str()))
    };
    let scratch = root.join("target/test");
    let places = table::Places {
        root: root.to_path_buf(),
        prefix: match &options.prefix {
            Some(prefix) => std::path::absolute(prefix)?,
            None => root.join("target/prefix"),
        },
        programs: scratch.join("programs"),
        scratch,
        full: options.full,
    };
    std::fs::create_dir_all(&places.scratch)?;
    if let Some(minutes) = options.within {
        runner::limit_all(Duration::from_secs(minutes * 60));
    }

    let start = Instant::now();
    let mut tally = Tally::default();
    let mut installed = true;
    for stage in STAGES.iter().filter(|stage| asked(stage)) {
        println!("== {stage}");
        let outcome = match *stage {
            "fmt" => cargo::format(&places, &mut tally),
            "clippy" => cargo::clippy(&places, &mut tally),
            "tidy" => single(&mut tally, stage, || crate::tidy::run(root)),
            "codegen" => single(&mut tally, stage, || crate::codegen::run(root, true, false)),
            "unit" => cargo::unit(&places, &mut tally),
            "loom" => cargo::loom(&places, &mut tally),
            "tsan" => cargo::tsan(&places, &mut tally),
            "dist" => {
                let failed = tally.failed;
                if options.prefix.is_none() {
                    single(&mut tally, stage, || crate::dist::run(root, &places.prefix, "release"))?;
                }
                installed = tally.failed == failed;
                Ok(())
            }
            _ if !installed => {
                tally.add(
                    stage,
                    "all",
                    Duration::ZERO,
                    Verdict::Failed("nothing was installed to test".to_owned()),
                );
                Ok(())
            }
            "programs" => programs(&places, &wanted, &mut tally),
            "benches" => benches(&places, &mut tally),
            "clients" => clients::run(&places, &wanted, options.modules.as_deref(), &mut tally),
            _ => Ok(()),
        };
        if let Err(error) = outcome {
            tally.add(stage, "the stage itself", Duration::ZERO, Verdict::Failed(format!("{error:#}")));
        }
    }
    println!("\nin {:.0} s", start.elapsed().as_secs_f64());
    tally.finish();
    if tally.failed > 0 {
        // The counts are the last line; a message of our own would hide them.
        std::process::exit(1);
    }
    let unmet: Vec<&str> = unmet.borrow().iter().copied().collect();
    if !unmet.is_empty() {
        bail!("no test's name contains '{}'; cargo xtask test --list shows the names", unmet.join("' or '"));
    }
    if tally.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

fn runs_programs(stage: &str) -> bool {
    matches!(stage, "programs" | "benches" | "clients")
}

fn single(tally: &mut Tally, stage: &str, check: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let start = Instant::now();
    let verdict = match check() {
        Ok(()) => Verdict::Passed,
        Err(error) => Verdict::Failed(format!("{error:#}")),
    };
    tally.add(stage, "workspace", start.elapsed(), verdict);
    Ok(())
}

fn programs(places: &table::Places, wanted: &dyn Fn(&str) -> bool, tally: &mut Tally) -> anyhow::Result<()> {
    let rows = table::read(&places.root)?;
    let any = rows.iter().flat_map(table::instances).any(|(name, _)| wanted(&name));
    if !any {
        return Ok(());
    }
    table::compile(places, tally)?;
    for row in &rows {
        for (name, ranks) in table::instances(row) {
            if wanted(&name) {
                table::run(places, row, &name, ranks, tally)?;
            }
        }
    }
    Ok(())
}

/// The yardsticks run, on our library alone and for a moment each: whether they work, not how fast they are. And the
/// shortest path keeps its budget of instructions.
fn benches(places: &table::Places, tally: &mut Tally) -> anyhow::Result<()> {
    let mut smoke = std::process::Command::new(places.prefix.join("bin/parnass"));
    smoke.args(["bench", "--alone", "--quick", "--output"]).arg(places.scratch.join("benches"));
    bench(places, "smoke", smoke, tally)?;
    let mut instructions = std::process::Command::new("python3");
    instructions.arg(places.root.join("benches/instructions.py")).arg("--ours").arg(&places.prefix);
    bench(places, "instructions", instructions, tally)
}

fn bench(
    places: &table::Places,
    name: &str,
    command: std::process::Command,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let outcome = runner::run(command, b"", Duration::from_secs(180), &places.scratch)?;
    let verdict = if outcome.code() == 0 && outcome.leftovers.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Failed(format!(
            "exit status {}, left behind: {:?}\n{}{}",
            outcome.code(),
            outcome.leftovers,
            tally::excerpt("stdout", &outcome.stdout),
            tally::excerpt("stderr", &outcome.stderr)
        ))
    };
    tally.add("benches", name, outcome.elapsed, verdict);
    Ok(())
}

fn list(root: &Path) -> anyhow::Result<()> {
    for row in table::read(root)? {
        for (name, _) in table::instances(&row) {
            println!("{name:32} {}", row.shows);
        }
    }
    for name in clients::names(root)? {
        println!("{name:32} (client)");
    }
    Ok(())
}
