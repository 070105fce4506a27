//! What the ranks have counted: kept for `mpiexec --stats`.

use std::io::{self, Write};

use parnass_counters::watch;
use parnass_transport_shm::JobMemory;

use super::Guardian;
use crate::agent::frames::Report;
use crate::report;
use crate::stats::{self, Account, Line};

impl Guardian {
    /// Keeps the memory of those who join as the same in their ranks, so that it can be read when they are gone.
    pub(super) fn keep_memory(&mut self, memory: &std::os::fd::OwnedFd) -> io::Result<()> {
        if self.job.stats.is_none() {
            return Ok(());
        }
        let memory = JobMemory::open(memory.try_clone()?)?;
        for rank in 0..memory.size() {
            memory.counters(rank).begin_watch(watch::TIMES_OUTSIDE);
        }
        self.kept.push(memory);
        Ok(())
    }

    /// What is known of the ranks of this node. They have ended.
    fn close_books(&mut self) {
        for (local, &rank) in (0..).zip(&self.own) {
            let account = self.accounts.entry(rank as u32).or_default();
            for memory in &self.kept {
                // Who never attached has counted nothing.
                if memory.observe(local).0 != 0 {
                    account.add(&memory.counters(local));
                }
            }
        }
        self.kept.clear();
    }

    /// Tells the guardian above what the ranks of this node did.
    pub(super) fn report_accounts(&mut self) {
        if self.job.stats.is_none() {
            return;
        }
        self.close_books();
        for (rank, account) in std::mem::take(&mut self.accounts) {
            self.report(Report::Account { rank, account });
        }
    }

    /// Shows what the ranks of the job did, if that is asked for. Everything else has been said.
    pub(super) fn show_accounts(&mut self) {
        let Some(file) = self.job.stats.clone() else { return };
        self.close_books();
        let nodes = &self.roster.description.nodes;
        let host = |rank: usize| match nodes.count() {
            1 => String::new(),
            _ => nodes.name(nodes.of_rank(rank as u32)).to_owned(),
        };
        let lines: Vec<Line> = self
            .ranks
            .iter()
            .enumerate()
            .map(|(rank, place)| Line {
                rank: rank as u32,
                host: host(rank),
                end: place.ended.map_or("was not started".to_owned(), report::ending),
                failed: place.ended.is_some_and(|status| !status.success()),
                account: self.accounts.get(&(rank as u32)).cloned(),
            })
            .collect();
        let Some(file) = file else {
            // A reader that is gone is nobody to tell.
            let _ = io::stderr().write_all(stats::table(&lines).as_bytes());
            return;
        };
        if let Err(error) = std::fs::write(&file, stats::json(&lines)) {
            eprintln!("mpiexec: --stats={}: cannot be written: {error}", file.display());
            self.code.get_or_insert(1);
        }
    }

    /// A rank's process has ended, and used this much.
    pub(super) fn note_usage(&mut self, rank: usize, usage: Account) {
        if self.job.stats.is_some() {
            let account: &mut Account = self.accounts.entry(rank as u32).or_default();
            account.cpu_us += usage.cpu_us;
            account.peak_kib = account.peak_kib.max(usage.peak_kib);
        }
    }
}
