//! `parnass`: what this installation is and can do.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use parnass_tools::{bench, counters, doctor, info, probe, protocols, tune};

#[derive(Parser)]
#[command(name = "parnass", version, about = "What this installation of Parnass is and can do")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Version, build, this machine, and the tables by which messages and collectives travel
    Info {
        /// Only the procedures that are not implemented, one name a line
        #[arg(long, group = "which")]
        missing: bool,
        /// How messages of each size travel here, how ranks wait, and why
        #[arg(long, group = "which")]
        protocols: bool,
        /// The values in force, where each came from, and what it does
        #[arg(long, group = "which")]
        tunables: bool,
        /// What every process counts, and the events that tools are told of
        #[arg(long, group = "which")]
        counters: bool,
        /// For programs
        #[arg(long, group = "which")]
        json: bool,
    },
    /// Compare this installation with other MPI libraries on this machine; writes a report with plots
    Bench(bench::Options),
    /// Checks this machine, and the hosts named, for what jobs need, and says what to change
    Doctor {
        /// Hosts to reach by ssh, with ranges as in n[01-16]
        hosts: Vec<String>,
        /// Where Parnass is installed on the hosts, where that is another place than here
        #[arg(long, value_name = "DIR")]
        prefix: Option<std::path::PathBuf>,
    },
    /// What `parnass doctor` runs on a host
    #[command(name = doctor::VISIT, hide = true)]
    Visit { port: u16 },
    /// Measures this machine and writes down the values that suit it, for mpiexec to use
    Tune {
        /// Write to this file instead of tuned.toml in the directory of the user's configuration
        #[arg(long)]
        output: Option<std::path::PathBuf>,
        /// Measure and tell, but write nothing
        #[arg(long)]
        dry_run: bool,
        /// How often each value is measured
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
        rounds: u16,
    },
    #[command(name = tune::RANK, hide = true)]
    TuneRank { yardstick: String },
    #[command(name = probe::TARGET, hide = true)]
    ProbeTarget,
    #[command(name = probe::READER, hide = true)]
    ProbeReader { process: String, address: String },
}

fn main() -> ExitCode {
    let text = match Arguments::parse().command {
        Command::Info { missing: true, .. } => info::missing(),
        Command::Info { counters: true, .. } => counters::text(),
        Command::Bench(options) => return bench::run(&options),
        Command::Doctor { hosts, prefix } => return doctor::run(&hosts, prefix.as_deref()),
        Command::Visit { port } => return doctor::visit(port),
        Command::Info { protocols, tunables, json, .. } => match info::Facts::gather() {
            Ok(facts) if protocols => protocols::text(&facts),
            Ok(facts) if tunables => protocols::tunables_text(&facts),
            Ok(facts) if json => format!("{:#}\n", facts.json()),
            Ok(facts) => facts.text(),
            Err(message) => return fail(&message),
        },
        Command::Tune { output, dry_run, rounds } => {
            let request = tune::Request { output, dry_run, rounds: rounds.into() };
            match tune::run(&request) {
                Ok(()) => String::new(),
                Err(message) => return fail(&message),
            }
        }
        Command::TuneRank { yardstick } => match tune::rank::run(&yardstick) {
            Ok(text) => text.unwrap_or_default(),
            Err(message) => return fail(&message),
        },
        Command::ProbeTarget => return probe::target(),
        Command::ProbeReader { process, address } => return probe::reader(&process, &address),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE, // The reader has gone; there is nobody to tell.
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("parnass: {message}");
    ExitCode::from(2)
}
