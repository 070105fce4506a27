//! Schedules in a simulator: against an oracle, and the simulator against what it must find.

mod oracle;
mod simulator;
mod watchdog;
