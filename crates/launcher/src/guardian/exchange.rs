//! Exchanges among all ranks: parts are collected on their way up, and handed down when all are there.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use parnass_bootstrap::Message;
use parnass_bootstrap::description::{encode_parts, file_of};

use super::Guardian;
use crate::agent::frames::{Order, Report};

/// The exchanges that have begun, by the wave of processes that takes part and their number in it.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    under_way: BTreeMap<(u32, u32), BTreeMap<u32, Vec<u8>>>,
    /// How many have come to their end.
    ended: u32,
}

impl Exchanges {
    /// Whether every rank has given its part to the first one.
    pub(super) fn has_begun(&self) -> bool {
        self.ended > 0
    }
}

impl Guardian {
    /// A process here has given its part.
    pub(super) fn take_part(&mut self, index: usize, part: Vec<u8>) {
        let Some(connection) = &mut self.connections[index] else { return };
        let Some(rank) = connection.rank else { return };
        let (wave, round) = (connection.wave, connection.rounds);
        connection.rounds += 1;
        self.collect(wave, round, vec![(rank as u32, part)]);
    }

    /// Adds parts from here or below. All from here and below go up together.
    pub(super) fn collect(&mut self, wave: u32, round: u32, parts: Vec<(u32, Vec<u8>)>) {
        let collected = self.exchanges.under_way.entry((wave, round)).or_default();
        collected.extend(parts);
        if collected.len() < self.own.len() + self.agents.iter().map(|agent| agent.ranks.len()).sum::<usize>()
        {
            return;
        }
        let parts = self.exchanges.under_way.remove(&(wave, round)).unwrap_or_default();
        if self.above.is_some() {
            self.report(Report::Exchange { wave, round, parts: parts.into_iter().collect() });
        } else {
            self.hand_out(wave, round, encode_parts(&parts.into_values().collect::<Vec<_>>()));
        }
    }

    /// Gives the parts of all ranks to those that take part, here and below.
    pub(super) fn hand_out(&mut self, wave: u32, round: u32, parts: Vec<u8>) {
        self.exchanges.ended += 1;
        let file = match file_of(c"parnass-exchange", &parts) {
            Ok(file) => file,
            Err(error) => {
                return self.fail(1, &format!("no memory for an exchange among the ranks: {error}"));
            }
        };
        for connection in self.connections.iter().flatten() {
            if connection.rank.is_some() && connection.wave == wave && connection.rounds == round + 1 {
                // Where it cannot be sent the process is gone, which is seen by the end of its connection.
                let _ =
                    parnass_bootstrap::send(connection.socket.as_fd(), &Message::Exchanged, &[file.as_fd()]);
            }
        }
        if (wave, round) == (0, 0) {
            self.introduce(&parts);
        }
        self.order_all(&Order::Exchanged { wave, round, parts });
    }
}
