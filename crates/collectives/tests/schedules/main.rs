//! Schedules in a simulator: against an oracle, and the simulator against what it must find.

mod neighbors;
mod oracle;
mod record;
mod simulator;
mod watchdog;
