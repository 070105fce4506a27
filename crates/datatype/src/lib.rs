//! Type maps compiled to copy programs; packing and unpacking of any window of the packed stream; type
//! signatures; `external32`; reduction operators. Knows no MPI object, only bytes and elements.

mod array;
mod copy;
mod element;
mod external32;
mod half;
mod layout;
mod operator;
mod program;
mod reduce;
mod signature;

pub use array::{Dealing, Share, Slice};
pub use element::{Element, Family};
pub use external32::ConversionError;
pub use layout::{Layout, LayoutError};
pub use operator::{Operand, Operator};
pub use reduce::{combine_word, reduce};
pub use signature::Signature;
