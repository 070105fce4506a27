//! `parnass`: what this installation is and can do.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use parnass_tools::{bench, doctor, info, probe};

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
        #[arg(long)]
        missing: bool,
        /// For programs
        #[arg(long, conflicts_with = "missing")]
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
    #[command(name = probe::TARGET, hide = true)]
    ProbeTarget,
    #[command(name = probe::READER, hide = true)]
    ProbeReader { process: String, address: String },
}

fn main() -> ExitCode {
    let text = match Arguments::parse().command {
        Command::Info { missing: true, .. } => info::missing(),
        Command::Info { json: true, .. } => format!("{:#}\n", info::Facts::gather().json()),
        Command::Info { .. } => info::Facts::gather().text(),
        Command::Bench(options) => return bench::run(&options),
        Command::Doctor { hosts, prefix } => return doctor::run(&hosts, prefix.as_deref()),
        Command::Visit { port } => return doctor::visit(port),
        Command::ProbeTarget => return probe::target(),
        Command::ProbeReader { process, address } => return probe::reader(&process, &address),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE, // The reader has gone; there is nobody to tell.
    }
}
