//! Handshakes: those that this side begins, and those that others do.

use super::Engine;
use super::peer::Peer;
use crate::wire::{Head, Kind};
use parnass_transport_stream::Refusal;
use parnass_transport_stream::handshake::{Callee, Caller, Move};
use parnass_transport_stream::proof::fresh;
use parnass_transport_stream::seal::Keys;
use parnass_transport_stream::wire::{Hello, Secret, Verdict};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// How long a handshake may take before it is begun again.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// After a failure a peer is called again so long after.
pub const AGAIN: Duration = Duration::from_millis(500);
/// For so long a peer that cannot be reached is called.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many may be answered at once.
const CROWD: usize = 256;

/// A handshake that this side has begun.
#[derive(Debug)]
pub struct Call {
    /// All attempts, by their tokens: any of them may still be answered.
    attempts: BTreeMap<u64, Caller>,
    pub next: Instant,
    until: Instant,
    pub failures: Vec<String>,
}

/// A handshake that somebody else has begun.
#[derive(Debug)]
pub struct Answering {
    callee: Callee,
    from: u32,
    deadline: Instant,
}

fn token(secret: &Secret) -> u64 {
    u64::from_le_bytes(*secret.first_chunk().expect("a secret is longer"))
}

impl Engine {
    fn post_letter(&mut self, to: u32, kind: Kind, token: u64, bytes: &[u8]) {
        let head = Head { kind, from: self.identity.me, sequence: 0, taken: 0, token };
        self.letters.push_back((to, [&head.encode()[..], bytes].concat()));
        self.send_letters();
    }

    pub(super) fn send_letters(&mut self) {
        for _ in 0..self.letters.len() {
            let Some((to, bytes)) = self.letters.pop_front() else { return };
            let sent = self.name(to).and_then(|name| {
                let slot = self.free.pop().ok_or(io::ErrorKind::WouldBlock)?;
                self.endpoint.slot(slot).write(&bytes);
                let sent = self.endpoint.send(slot, bytes.len(), name, true);
                if matches!(sent, Ok(false)) {
                    self.owners[slot] = to;
                    if let Some(peer) = self.peers.get_mut(&to) {
                        peer.outstanding += 1;
                    }
                } else {
                    self.free.push(slot);
                }
                sent
            });
            match sent {
                Ok(_) => (),
                // In order per peer: whoever has none left in the row may be sent the next.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.letters.push_back((to, bytes))
                }
                Err(error) => self.failed(to, &error),
            }
        }
    }

    /// Begins a handshake with a peer, or begins it again.
    fn call_at(&mut self, peer: u32, until: Instant, failures: Vec<String>) {
        let Ok(nonce) = fresh() else { return };
        let (caller, first) = Caller::new(self.identity, peer, nonce);
        let token = token(&nonce);
        let next = Instant::now() + HANDSHAKE;
        let new = || Call { attempts: BTreeMap::new(), next, until, failures };
        let call = self.calls.entry(peer).or_insert_with(new);
        call.attempts.insert(token, caller);
        call.next = next;
        self.letters.retain(|(to, bytes)| *to != peer || bytes[0] & 15 != 1);
        if let Move::Exchange(hello, _) = first {
            self.post_letter(peer, Kind::Hello, token, &hello);
        }
    }

    /// Wants a stream to a peer.
    pub fn connect(&mut self, peer: u32) {
        if !self.peers.contains_key(&peer) && !self.calls.contains_key(&peer) {
            self.call_at(peer, Instant::now() + PATIENCE, Vec::new());
            self.progress();
        }
    }

    /// Calls again who has not answered; gives up those that cannot be reached, each with what was tried. For the time `absent`
    /// nobody has looked.
    pub fn look_after_calls(&mut self, now: Instant, absent: Duration) -> Vec<(u32, Vec<String>)> {
        self.calls.values_mut().for_each(|call| call.until += absent);
        self.answering.values_mut().for_each(|answering| answering.deadline += absent);
        let due: Vec<u32> =
            self.calls.iter().filter(|(_, call)| call.next <= now).map(|(peer, _)| *peer).collect();
        let mut given_up = Vec::new();
        for peer in due {
            let Some(call) = self.calls.get(&peer) else { continue };
            if now < call.until {
                self.call_at(peer, call.until, Vec::new());
            } else {
                self.letters.retain(|(to, _)| *to != peer);
                let failures = self.calls.remove(&peer).map(|call| call.failures);
                given_up.push((peer, failures.unwrap_or_default()));
            }
        }
        let late: Vec<u64> = self
            .answering
            .iter()
            .filter(|(_, answering)| answering.deadline <= now)
            .map(|(token, _)| *token)
            .collect();
        for token in late {
            self.answering.remove(&token);
            self.refusals.count(Refusal::Slow);
        }
        given_up
    }

    /// Until when the keeper may sleep; `None`: nothing is due.
    pub fn deadline(&self) -> Option<Instant> {
        let calls = self.calls.values().map(|call| call.next);
        calls.chain(self.answering.values().map(|answering| answering.deadline)).min()
    }

    /// A message of a handshake.
    pub(super) fn letter(&mut self, head: &Head, bytes: &[u8]) -> Result<(), Refusal> {
        let from = head.from;
        if from >= self.identity.size || from == self.identity.me {
            return Err(Refusal::OtherJob);
        }
        match head.kind {
            Kind::Hello => {
                let hello: &[u8; Hello::BYTES] = bytes.try_into().map_err(|_| Refusal::Garbage)?;
                let hello = Hello::decode(hello).ok_or(Refusal::Garbage)?;
                if hello.from != from || token(&hello.nonce) != head.token {
                    return Err(Refusal::Garbage);
                }
                let Ok(nonce) = fresh() else { return Ok(()) };
                let (mut callee, _) = Callee::new(self.identity, nonce);
                let Move::Exchange(challenge, _) = callee.receive(bytes)? else { return Ok(()) };
                if self.answering.len() >= CROWD {
                    let oldest = self.answering.iter().min_by_key(|(_, answering)| answering.deadline);
                    if let Some(oldest) = oldest.map(|(token, _)| *token) {
                        self.answering.remove(&oldest);
                        self.refusals.count(Refusal::Crowd);
                    }
                }
                let deadline = Instant::now() + HANDSHAKE;
                self.answering.insert(head.token, Answering { callee, from, deadline });
                self.post_letter(from, Kind::Challenge, head.token, &challenge);
            }
            Kind::Challenge => {
                let call = self.calls.get_mut(&from);
                let Some(caller) = call.and_then(|call| call.attempts.get_mut(&head.token)) else {
                    return Ok(());
                };
                if let Move::Exchange(answer, _) = caller.receive(bytes)? {
                    self.post_letter(from, Kind::Answer, head.token, &answer);
                }
            }
            Kind::Answer => {
                let answering =
                    self.answering.get_mut(&head.token).filter(|answering| answering.from == from);
                let answering = answering.ok_or(Refusal::Proof)?;
                if let Move::Decide(peer) = answering.callee.receive(bytes)? {
                    let Some(Answering { callee, .. }) = self.answering.remove(&head.token) else {
                        return Ok(());
                    };
                    self.decide(peer, head.token, &callee);
                }
            }
            Kind::Verdict => {
                let call = self.calls.get_mut(&from);
                let Some(caller) = call.and_then(|call| call.attempts.get_mut(&head.token)) else {
                    return Ok(());
                };
                // A verdict of `crossed`: the peer's own call is on its way; if it fails, this side tries again.
                if let Move::Over(Verdict::Accepted) = caller.receive(bytes)? {
                    let (tokens, keys) = (caller.tokens(), caller.keys());
                    self.rise(from, tokens, keys);
                }
            }
            Kind::Data | Kind::Last | Kind::Heard => (),
        }
        Ok(())
    }

    /// Decides, as the side that was called, which of two crossing calls it is to be: that of the lower rank.
    fn decide(&mut self, peer: u32, token: u64, callee: &Callee) {
        let called = self.calls.contains_key(&peer);
        let crossed = self.peers.contains_key(&peer) || called && peer > self.identity.me;
        let verdict = if crossed { Verdict::Crossed } else { Verdict::Accepted };
        self.post_letter(peer, Kind::Verdict, token, &callee.decide(verdict));
        if !crossed {
            self.rise(peer, callee.tokens(), callee.keys());
        }
    }

    /// A handshake is over: from now on packets of this peer are of its stream.
    fn rise(&mut self, peer: u32, tokens: Option<[Secret; 2]>, keys: Option<Keys>) {
        let Some(tokens) = tokens else { return };
        self.calls.remove(&peer);
        self.peers.insert(peer, Peer::new(tokens.map(|secret| token(&secret))));
        self.up.push((peer, keys));
    }
}
