//! Development commands, run as `cargo xtask COMMAND` from anywhere in the workspace.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

mod codegen;
mod demo;
mod dist;
mod python;
mod test;
mod tidy;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development commands of Parnass", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generate the committed files that come from spec/, and README's figures
    Codegen {
        /// Write nothing; fail when a committed file differs from what would be generated
        #[arg(long)]
        check: bool,
        /// First add a stub to crates/abi/src/calls for every body that is not there
        #[arg(long, conflicts_with = "check")]
        stubs: bool,
    },
    /// Check the walls between the crates and the rules that the compiler does not know
    Tidy,
    /// Build everything and run real MPI programs on four ranks
    Demo,
    /// Run every check: format, lints, unit, property and loom tests, multi-process programs, real clients
    Test(test::Options),
    /// Compare with the other MPI libraries, which are fetched from the Python package index
    Bench {
        /// Copy the result to docs/, where there is a file for each sort of processor (with --only, its rows alone), for README's figures
        #[arg(long)]
        publish: bool,
        /// Options for `parnass bench`, such as `--install=mpich --rounds 1 --only pingpong`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Build a release and install it: bin/, lib/, include/
    Dist {
        /// Where to install; target/prefix in the workspace, if not given
        #[arg(long, value_name = "DIR")]
        prefix: Option<PathBuf>,
        /// Cargo's profile; dev builds quicker and runs slower
        #[arg(long, value_name = "NAME", default_value = "release")]
        profile: String,
    },
}

fn main() -> std::process::ExitCode {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf();
    let outcome = match Arguments::parse().command {
        Command::Codegen { check, stubs } => codegen::run(&root, check, stubs),
        Command::Tidy => tidy::run(&root),
        Command::Demo => demo::run(&root),
        Command::Test(options) => test::run(&root, &options),
        Command::Bench { publish, options } => bench(&root, publish, &options),
        Command::Dist { prefix, profile } => {
            dist::run(&root, &prefix.unwrap_or_else(|| root.join("target/prefix")), &profile)
        }
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Installs a release and has it compare itself with the peers; without any that are named, it installs them.
fn bench(root: &Path, publish: bool, options: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(
        !publish || !options.iter().any(|option| option.starts_with("--over")),
        "README's figures are those of one machine's memory; run without --publish, or without --over"
    );
    let (prefix, output) = (root.join("target/prefix"), root.join("target/bench"));
    dist::run(root, &prefix, "release")?;
    let mut command = std::process::Command::new(prefix.join("bin/parnass"));
    command.arg("bench").arg("--output").arg(&output);
    let choosing = ["--install", "--peer", "--alone", "--show", "--help"];
    if !options.iter().any(|option| choosing.iter().any(|choice| option.starts_with(choice))) {
        command.arg("--install");
    }
    let status = command.args(options).status()?;
    anyhow::ensure!(status.success(), "parnass bench: {status}");
    if publish {
        let result = std::fs::read_to_string(output.join("result.json"))?;
        let committed = root.join(codegen::file_of(&result)?);
        let result = match std::fs::read_to_string(&committed) {
            Ok(before) if options.iter().any(|option| option.starts_with("--only")) => {
                codegen::with_later(&before, &result)?
            }
            _ => result,
        };
        std::fs::write(&committed, result)?;
        codegen::run(root, false, false)?;
    }
    Ok(())
}
