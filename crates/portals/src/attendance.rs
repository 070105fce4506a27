//! What a process shows of its waiting: peers and its own helper thread leave to it what it does itself while it waits.

use crate::Interface;
use crate::interface::ProcessId;
use parnass_base::atomics::{Ordering, full_fence};
use parnass_transport::{Prospect, Waiting};

impl Interface {
    /// Announces that the caller will `wait` for `awaited`, or for anybody, as soon as its next put or append has been made: peers may then
    /// count on this process to do its part of a long message. [`Interface::leave`] must follow.
    #[inline]
    pub fn will_wait(&self, awaited: Option<ProcessId>) {
        self.core.show_waiting(awaited);
    }

    /// As [`Interface::will_wait`], for puts and appends between which the caller does little: what comes over a network meanwhile is left
    /// for that wait, and wakes no thread. Peers on this node are not to count on this process yet.
    #[inline]
    pub fn will_wait_afar(&self) {
        if self.core.networked.load(Ordering::Relaxed) {
            self.core.show_watching(None);
        }
    }

    /// As [`Interface::will_wait`], for one that is about to look itself. What comes over a network meanwhile wakes the thread of that on the processor
    /// of the caller, and is to be left to the caller; and where each has a core, a long message that comes had better go as between two who wait.
    #[inline]
    pub fn will_look(&self, awaited: Option<ProcessId>) {
        if self.core.transport.spins() != 0 || !self.core.may_come_near(awaited) {
            self.core.show_waiting(awaited);
        }
    }

    /// The caller has stopped waiting, after [`Interface::wait`] or [`Interface::will_wait`]. What is still moving is left to the helper thread.
    #[inline]
    pub fn leave(&self) {
        let core = &self.core;
        if !core.is_attended() {
            return;
        }
        if core.has_pipes() && core.is_thrifty() {
            core.finish_pipes();
        }
        core.transport.show(Waiting::Not);
        if core.networked.load(Ordering::Relaxed) {
            core.pass_on();
        }
        if core.wheel.is_there() {
            // Who has sent a request since the last look rang while the helper still saw this thread wait. Pairs with the fence in the
            // helper's sleep: it sees that nobody waits any more, or what it would have slept through is seen here. And with the one in
            // `Watch::arrivals`: a keeper that has found this thread waiting is asked to come again.
            full_fence();
            core.transport.attend_soon(Prospect::Request);
            if core.is_left_with_any() {
                core.transport.ring_helper(core.me);
                return;
            }
        }
        if core.expects_peers() {
            // Pairs with the fence in `Core::see_to`: a peer that has just matched what this process sent saw that it waits, and so
            // leaves the moving to it.
            full_fence();
        }
        if self.helper.is_started() && core.is_moving() && (!core.is_thrifty() || core.owes()) {
            core.transport.ring_helper_that_waits(core.me);
        }
    }
}
