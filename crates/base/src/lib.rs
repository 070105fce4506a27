//! The ground that every other room stands on: opaque user addresses, mapped memory, records, the mailbox lane,
//! the lock and the doorbell that processes share, the atomics facade, the futex, and sockets and files that
//! are read and written from user memory. Nothing here knows messages.

pub mod access;
mod address;
mod ahead;
mod arrived;
pub mod atomics;
pub mod barrier;
pub mod bytes;
pub mod choice;
pub mod clock;
pub mod copy;
pub mod desk;
pub mod doorbell;
pub mod favoured;
pub mod file;
pub mod futex;
mod growing;
pub mod guarded;
mod held;
pub mod inherited;
pub mod lane;
pub mod ledger;
pub mod lock;
pub mod note;
mod pace;
pub mod place;
pub mod pmix;
pub mod process;
mod record;
mod region;
pub mod remains;
mod short;
pub mod shuttle;
mod slot;
pub mod socket;
mod torn;
pub mod traced;

pub use address::{Scratch, UserAddress};
pub use ahead::Ahead;
pub use growing::Growing;
pub use held::Held;
pub use pace::Pace;
pub use record::{Record, Word32, Word64};
pub use region::{PAGE, Placed, Region, Table, Window};
