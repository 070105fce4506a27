//! Turning the wheel, and waiting until it can be turned.

use crate::core::{Core, Driver, Outcome, event_of};
use crate::interface::*;
use crate::nic::Nic;
use crate::record::flag;
use crate::slab::Purpose;
use crate::stay::Stay;
use crate::transfer;
use parnass_base::atomics::Ordering;
use parnass_base::clock::nanoseconds;
use parnass_counters as counters;
use parnass_counters::watch;
use parnass_transport::{Prospect, Turns, Waiting};
use std::time::{Duration, Instant};

/// Polls between two looks at the NICs of peers that this process waits for, and before the first: who is about to wait for
/// a message is left the time to say so.
const HELP_EVERY: u32 = 256;
const HELP_FIRST: u32 = 24;
/// Polls of a thread that is not the only one of its process to wait, before it gives turns away: more than an answer
/// takes from a process that runs. So two threads on one processor take turns that are long, and each finds the
/// thread that it talks with running.
const ALONE: u32 = 192;
/// Polls between two turns given away.
const YIELD_EVERY: u32 = 32;
/// The same where a process of another node is awaited: each poll asks the kernel. The keeper of a process that computes may have been woken on this processor.
pub const YIELD_EVERY_FAR: u32 = 8;
/// How long to look for what comes from a process that runs beside this one, about what it takes to give a turn away and to get one; and looks
/// between two questions whether it does.
const BESIDE_NS: u64 = 1_000;
const LOOKS_BESIDE: u32 = 16;
/// How long to sleep at most while something waits for room that nobody announces.
const ROOM_PAUSE: Duration = Duration::from_micros(200);
/// How long to sleep at most while a peer's NIC was busy when this process wanted to drive it, or a peer was in the middle of a message.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
/// How long to sleep at most while a peer has not taken in what it was sent. It waits, and is about to; or it stops waiting without
/// having looked, and nobody rings for that.
const UNREAD_PAUSE: Duration = Duration::from_millis(4);

/// What came of driving peers.
#[derive(Clone, Copy, Debug, Default)]
struct Helped {
    worked: bool,
    /// Somebody else held a lock.
    busy: bool,
}

impl Core {
    #[inline]
    pub fn progress(&self, sink: &mut impl Sink) -> bool {
        let nic = self.own();
        let control = &nic.control;
        let mut outcome = Outcome::default();
        let mut happened = false;
        if self.transport.poll(self.me) || control.events.count.get() != 0 || self.parked_are_met(nic) {
            self.lock(nic);
            if self.parked_are_met(nic) {
                self.post_parked(nic, Driver::Owner, &mut outcome);
            }
            if control.events.count.get() != 0 {
                self.collect_events(nic, &mut outcome);
            }
            happened |= self.take_in_own(nic, &mut outcome, sink) != 0;
            nic.lock().release();
            if happened && self.networked.load(Ordering::Relaxed) {
                self.pass_on();
            }
        }
        if control.unclaimed.load(Ordering::Relaxed) != 0 {
            happened |= self.move_own(Driver::Owner, &mut outcome);
        }
        if self.is_called() {
            happened |= self.answer(Driver::Owner);
        }
        if control.desk.is_asked() {
            happened |= self.carry_out();
        }
        if self.has_pipes() {
            happened |= self.move_pipes(Driver::Owner, &mut outcome);
        }
        if self.delayed_count.load(Ordering::Relaxed) != 0 {
            happened |= self.send_delayed(&mut outcome);
        }
        self.finish(&mut outcome);
        if outcome.events.is_empty() {
            return happened;
        }
        while let Some(event) = outcome.events.pop() {
            sink.hear(event);
        }
        true
    }

    /// The same, where nobody hears of events now: they are left for the owner.
    #[cold]
    pub fn progress_and_leave_events(&self) -> bool {
        let mut outcome = Outcome::default();
        let happened = self.progress(&mut |event| outcome.events.push(event));
        self.leave_events(&mut outcome);
        happened
    }

    fn collect_events(&self, nic: &Nic, outcome: &mut Outcome) {
        while let index @ 1.. = nic.control.events.head.get() {
            let record = nic.slab.at(index);
            outcome.events.push(event_of(record, EventKind::from_number(record.detail.get())));
            if record.flags.get() & flag::AWAITED != 0 {
                self.received(record.source.get(), 1);
            }
            nic.slab.remove(&nic.control.events, index);
            nic.slab.release(index);
        }
    }

    /// Whether somebody has matched a direct put of this process.
    #[inline(always)]
    fn is_called(&self) -> bool {
        self.own().control.calls.load(Ordering::Relaxed) != 0 || self.unanswered.load(Ordering::Relaxed)
    }

    /// Somebody has matched a direct put of this process.
    fn answer(&self, driver: Driver) -> bool {
        // Acquire pairs with the release in `call`.
        self.own().control.calls.swap(0, Ordering::Acquire);
        self.unanswered.store(false, Ordering::Relaxed);
        let helped = self.help_all(driver);
        if helped.busy {
            // Nobody calls a second time: a process that only tests must come back by itself.
            self.unanswered.store(true, Ordering::Relaxed);
        }
        helped.worked
    }

    /// Whether this process waits for something to happen at the NICs of peers.
    #[inline]
    pub fn expects_peers(&self) -> bool {
        self.outstanding_count.load(Ordering::Relaxed) != 0 || self.delayed_count.load(Ordering::Relaxed) != 0
    }

    /// The peers from which events will come, or which have no room for more.
    fn expected_peers(&self) -> impl Iterator<Item = u32> {
        (0..).zip(self.tallies.own()).filter_map(|(target, counters)| {
            let concerned = counters.outstanding.load(Ordering::Relaxed) != 0 || counters.delayed() != 0;
            (concerned && target != self.me && !counters.is_dead()).then_some(target)
        })
    }

    /// Drives the NICs of all peers from which events will come, or which have no room for more.
    fn help_all(&self, driver: Driver) -> Helped {
        let mut helped = Helped::default();
        if !self.expects_peers() {
            return helped;
        }
        for target in self.expected_peers() {
            let one = self.help(target, driver);
            helped.worked |= one.worked;
            helped.busy |= one.busy;
        }
        helped
    }

    /// Whether one of them has not taken in all that it was sent.
    fn leave_unread(&self) -> bool {
        self.expected_peers().any(|target| !self.is_far(target) && self.transport.poll(target))
    }

    /// Takes in the arrivals of a target that computes, and moves data of this process that matched there.
    fn help(&self, target: u32, driver: Driver) -> Helped {
        if self.is_far(target) {
            return Helped::default();
        }
        let nic = self.nic_of(target);
        let waiting = self.transport.shown(target) == Waiting::Not && self.transport.poll(target);
        // Who watches its arrivals sees them itself.
        let arrivals = waiting && nic.counters.watch() & watch::EVENTS == 0;
        if waiting && !arrivals {
            self.transport.ring_helper(target);
        }
        if !arrivals && nic.control.transfers.count.get() == 0 {
            return Helped::default();
        }
        if !nic.lock().try_acquire(self.transport.holder()) {
            return Helped { worked: false, busy: true };
        }
        let mut outcome = Outcome::default();
        let piped = nic.control.piped.load(Ordering::Relaxed);
        let ready = arrivals && self.post_parked_of(nic, target, &mut outcome);
        let taken = if ready { self.take_in(nic, target, Driver::Other, &mut outcome) } else { 0 };
        if arrivals && taken == 0 {
            // What has come can only be placed by the target itself.
            self.transport.ring_helper(target);
        }
        let works = transfer::works_of(nic, Some(self.me));
        nic.lock().release();
        if taken != 0 {
            self.transport.ring(target);
            if nic.control.piped.load(Ordering::Relaxed) != piped {
                self.transport.ring_helper(target);
            }
        }
        self.finish(&mut outcome);
        let mut worked = taken != 0;
        for work in works {
            worked |= self.move_to(target, &work, driver);
        }
        if worked {
            self.counters.count_any(counters::PEERS_DRIVEN, 1);
        }
        Helped { worked, busy: false }
    }

    /// Whether `progress` would find something.
    #[inline]
    pub fn has_work(&self) -> bool {
        let control = &self.own().control;
        self.transport.poll(self.me)
            || control.events.count.get() != 0
            || control.unclaimed.load(Ordering::Relaxed) != 0
            || control.calls.load(Ordering::Relaxed) != 0
            || control.desk.is_asked()
            || self.pipes_move()
            || self.parked_are_met(self.own())
    }

    // ---- waiting

    /// The process is shown as waiting before, until [`crate::Interface::leave`].
    /// `watched`: whether something besides the NIC's work has happened that ends the wait; who makes it happen rings.
    #[inline]
    pub fn wait(
        &self,
        ticket: Ticket,
        awaited: Option<ProcessId>,
        deadline: Option<Instant>,
        company: Company,
        watched: impl Fn() -> bool,
    ) {
        self.counters.count(counters::WAITS, 1);
        let began = self.watched_since();
        self.wait_shown(ticket, awaited, deadline, company, watched);
        self.count_waited(began);
    }

    /// Shows that this process waits, for one or for any, until it shows itself that it does not.
    #[inline]
    pub fn show_looking(&self, awaited: Option<ProcessId>) {
        self.transport.show(awaited.map_or(Waiting::ForAny, |awaited| Waiting::For(awaited.0)));
    }

    /// The same until [`crate::Interface::leave`].
    #[inline]
    pub fn show_waiting(&self, awaited: Option<ProcessId>) {
        self.show_looking(awaited);
        self.is_back();
    }

    /// The process will leave again.
    #[inline]
    fn is_back(&self) {
        if self.networked.load(Ordering::Relaxed) {
            self.transport.attended();
        }
    }

    /// Shows that this process waits for something that is no message to be received: what is sent to it meanwhile may find it
    /// computing when it is received. Until it shows itself that it does not.
    #[inline]
    pub fn show_searching(&self, awaited: Option<ProcessId>) {
        match awaited {
            Some(awaited) if self.is_far(awaited.0) => self.show_looking(Some(awaited)),
            _ => self.transport.show(Waiting::ForElse),
        }
    }

    /// The same until [`crate::Interface::leave`].
    #[inline]
    pub fn show_watching(&self, awaited: Option<ProcessId>) {
        self.show_searching(awaited);
        self.is_back();
    }

    /// Whether there is something to move that was begun: a transfer, a pipe, what could not be sent.
    #[inline]
    pub fn is_moving(&self) -> bool {
        let control = &self.own().control;
        control.unclaimed.load(Ordering::Relaxed) != 0
            || control.calls.load(Ordering::Relaxed) != 0
            || self.delayed_count.load(Ordering::Relaxed) != 0
            || self.has_pipes()
    }

    /// Now, if somebody wants to know how long calls wait.
    #[inline(always)]
    pub fn watched_since(&self) -> Option<Instant> {
        (self.counters.watch() & watch::ANY_TIMES != 0).then(Instant::now)
    }

    /// Counts a wait that began when [`Core::watched_since`] was asked.
    #[inline(always)]
    pub fn count_waited(&self, began: Option<Instant>) {
        if let Some(began) = began {
            self.counters.count_any(counters::TIME_WAITING, began.elapsed().as_nanos() as u64);
        }
    }

    /// As [`parnass_transport::Transport::sleep`], counted and told.
    fn sleep(
        &self,
        ticket: Ticket,
        awaited: Option<ProcessId>,
        deadline: Option<Instant>,
        changed: &mut dyn FnMut() -> bool,
    ) {
        let watch = self.counters.watch();
        if watch & (watch::ANY_TIMES | watch::EVENTS) == 0 {
            self.counters.count_any(counters::SLEEPS, 1);
            return self.transport.sleep(ticket.0, deadline, changed);
        }
        // What changed meanwhile ends the sleep before it begins, and then it was none.
        let mut slept = true;
        let began = Instant::now();
        self.transport.sleep(ticket.0, deadline, &mut || {
            let at_once = changed();
            slept = !at_once;
            if slept {
                let awaited = awaited.map_or(u32::MAX, |awaited| awaited.0);
                self.observer.raise(counters::FELL_ASLEEP, &[awaited.into()]);
            }
            at_once
        });
        if slept {
            let asleep_ns = began.elapsed().as_nanos() as u64;
            self.counters.count_any(counters::SLEEPS, 1);
            if watch & watch::ANY_TIMES != 0 {
                self.counters.count_any(counters::TIME_ASLEEP, asleep_ns);
            }
            self.observer.raise(counters::WOKE_UP, &[asleep_ns]);
        }
    }

    /// Where ranks share processors: lets others run, unless `changed` comes true while the awaited one runs beside this one. `false`: it
    /// is time to sleep.
    pub fn take_turns(
        &self,
        awaited: Option<ProcessId>,
        turns: &mut Turns,
        changed: impl Fn() -> bool,
    ) -> bool {
        self.await_beside(awaited, changed) || self.transport.step_aside(turns)
    }

    /// Looks for as long as the awaited one runs beside this one, which answers sooner than others could have their turn; not longer than giving
    /// one and getting it back takes. Whether `changed` has come true.
    fn await_beside(&self, awaited: Option<ProcessId>, changed: impl Fn() -> bool) -> bool {
        let Some(ProcessId(peer)) = awaited.filter(|awaited| awaited.0 != self.me) else { return false };
        let mut end = None;
        while self.transport.runs_beside(peer) {
            for _ in 0..LOOKS_BESIDE {
                if changed() {
                    return true;
                }
                std::hint::spin_loop();
            }
            let now = nanoseconds();
            if now > *end.get_or_insert(now + BESIDE_NS) {
                break;
            }
        }
        false
    }

    #[inline]
    fn wait_shown(
        &self,
        ticket: Ticket,
        awaited: Option<ProcessId>,
        deadline: Option<Instant>,
        company: Company,
        watched: impl Fn() -> bool,
    ) {
        let changed = || self.has_work() || watched() || self.transport.rings() != ticket.0;
        let expecting = self.expects_peers();
        let delayed = self.delayed_count.load(Ordering::Relaxed) != 0;
        let spins = self.transport.spins();
        let far = awaited.is_some_and(|awaited| self.is_far(awaited.0));
        if !delayed {
            for turn in 1..=spins {
                let looks = turn == HELP_FIRST || turn.is_multiple_of(HELP_EVERY);
                if changed()
                    || looks && (expecting && self.help_all(Driver::Owner).worked || self.wheel.is_due())
                {
                    return;
                }
                let pause = if far { YIELD_EVERY_FAR } else { YIELD_EVERY };
                if (far || company == Company::Others && turn >= ALONE) && turn.is_multiple_of(pause) {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
        }
        let mut turns = Turns::default();
        // Who has spun already sleeps now: a sleeper is scheduled soon when it is woken, one that yields is not.
        while spins == 0 && self.take_turns(awaited, &mut turns, changed) {
            if changed() || self.wheel.is_due() {
                return;
            }
        }
        let mut limit = delayed.then_some(ROOM_PAUSE);
        if expecting {
            let helped = self.help_all(Driver::Owner);
            if helped.worked {
                return;
            }
            if helped.busy {
                limit = Some(limit.unwrap_or(BUSY_PAUSE));
            } else if self.leave_unread() {
                limit = Some(limit.unwrap_or(UNREAD_PAUSE));
            }
        }
        if self.buries.load(Ordering::Relaxed) {
            limit = Some(limit.unwrap_or(BUSY_PAUSE));
        }
        let limit = limit.map(|limit| Instant::now() + limit);
        let deadline = limit.into_iter().chain(deadline).min();
        // Others, who drive this NIC from here on, would have to force a fence on this process.
        self.post_all();
        // Who rings wakes sleepers only: what was rung for since the last turn of the wheel is seen by the last look.
        self.sleep(ticket, awaited, deadline, &mut || self.has_work() || watched() || self.wheel.is_due());
        if self.transport.meets_crowd() {
            self.counters.count_any(counters::CROWDS, 1);
        }
    }

    // ---- what the helper thread asks and does

    /// Whether a thread of this process waits, and so does the work itself.
    pub fn is_attended(&self) -> bool {
        self.transport.shown(self.me) != Waiting::Not
    }

    /// Something is under way for which the caller does not wait at once.
    #[inline(always)]
    pub fn attend_soon(&self, prospect: Prospect) {
        if self.networked.load(Ordering::Relaxed) && !self.is_attended() {
            self.transport.attend_soon(prospect);
        }
    }

    /// Whether the helper thread of this process would take the time of the process itself, so that it does only what a peer waits for and cannot do.
    pub fn is_thrifty(&self) -> bool {
        !self.tuning.helper_always() && !self.transport.has_spare_processor()
    }

    /// Whether a peer that waits needs this process for something that is under way.
    pub fn owes(&self) -> bool {
        self.delayed_count.load(Ordering::Relaxed) != 0
            || self.has_pipes() && self.owes_pipes()
            || self.is_called() && self.expected_peers().any(|target| self.owes_transfers(target))
            || self.own().control.unclaimed.load(Ordering::Relaxed) != 0 && self.owes_transfers(self.me)
    }

    /// Whether the owner has stopped waiting while something moves.
    pub fn is_left_with_work(&self) -> bool {
        !self.is_attended() && self.is_moving()
    }

    /// Whether there is work that should not wait for the owner.
    pub fn needs_help(&self) -> bool {
        self.transport.poll(self.me) || self.holds_work()
    }

    /// Whether there may be a request for a process that computes, to which others send some.
    pub fn is_asked(&self) -> bool {
        self.wheel.is_there() && !self.is_attended() && self.needs_help()
    }

    /// As [`Core::needs_help`], for an owner who leaves: what comes over a network from now on is the attendant's.
    pub fn is_left_with_any(&self) -> bool {
        self.transport.holds(self.me) || self.holds_work()
    }

    fn holds_work(&self) -> bool {
        let control = &self.own().control;
        control.unclaimed.load(Ordering::Relaxed) != 0
            || self.is_called()
            || self.delayed_count.load(Ordering::Relaxed) != 0
            || self.pipes_move()
            || self.wheel.is_there() && (control.events.count.get() != 0 || self.wheel.is_due())
    }

    /// Wakes threads of this process that sleep for what this one has met and not taken: to look at a network is to read from it, and what
    /// is read wakes nobody any more. Who falls asleep looks last, behind the lock under which it was read: so it finds that, or is seen here.
    pub fn pass_on(&self) {
        if self.transport.sleeps(self.me) && self.transport.holds(self.me) {
            self.transport.ring(self.me);
        }
    }

    /// Progress while no thread of this process waits. Whether anything happened.
    pub fn work_unattended(&self) -> bool {
        self.wheel.turn().unwrap_or_else(|| self.work_for_owner())
    }

    /// Progress whose events are left for the owner.
    fn work_for_owner(&self) -> bool {
        let nic = self.own();
        let mut outcome = Outcome::default();
        let mut happened = false;
        if self.transport.poll(self.me) && nic.lock().try_acquire(self.transport.holder()) {
            if self.post_parked_of(nic, self.me, &mut outcome) {
                happened |= self.take_in(nic, self.me, Driver::Other, &mut outcome) != 0;
            }
            nic.lock().release();
        }
        happened |= self.move_own(Driver::Other, &mut outcome);
        if self.is_called() {
            happened |= self.answer(Driver::Other);
        }
        happened |= self.move_pipes(Driver::Other, &mut outcome);
        if self.delayed_count.load(Ordering::Relaxed) != 0 {
            happened |= self.send_delayed(&mut outcome);
        }
        self.finish(&mut outcome);
        self.leave_events(&mut outcome);
        if happened {
            self.transport.ring(self.me);
        }
        happened
    }

    /// Leaves events for the owner, who looks for them: threads of it that sleep are woken, for they may have looked while these were here.
    pub fn leave_events(&self, outcome: &mut Outcome) {
        if outcome.events.is_empty() {
            return;
        }
        let nic = self.own();
        self.lock(nic);
        while let Some(event) = outcome.events.pop() {
            self.queue_copy(nic, &event, 0);
        }
        nic.lock().release();
        self.transport.ring(self.me);
    }

    /// Takes in what the network has brought, as long as no thread of this process waits and so takes it itself, and what soon follows. Whether there
    /// was anything.
    pub fn attend(&self, stay: &mut Stay) -> bool {
        let mut useful = false;
        stay.begin(Instant::now());
        while !self.is_attended() {
            // To look is to ask the kernel: again only for what is there, or likely to follow.
            let looks = !useful || stay.looks() || self.transport.holds(self.me);
            if looks && self.transport.look_afar() && self.work_unattended() {
                useful = true;
                stay.taken(Instant::now());
            } else if !useful || !stay.goes_on(Instant::now()) {
                break;
            }
        }
        if useful {
            self.counters.count_any(counters::HELPER_WORKS, 1);
        }
        useful
    }

    pub fn queue_copy(&self, nic: &Nic, event: &Event, flags: u32) {
        let index = nic.slab.allocate(Purpose::Completion);
        if index != 0 {
            let record = nic.slab.at(index);
            record.source.set(event.initiator.0);
            record.match_bits.set(event.match_bits);
            record.header_data.set(event.header_data);
            record.requested.set(event.requested_length);
            record.length.set(event.placed_length);
            record.user.set(event.user);
            record.flags.set(flags);
            nic.queue_event(index, event.kind as u32);
        }
    }
}
