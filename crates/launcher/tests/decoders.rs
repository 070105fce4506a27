//! Whatever comes is decoded or refused: short runs of what the fuzz targets in fuzz/ do for long.

use parnass_launcher::fuzzing::{DECODERS, decode, sample};

include!("../../../tests/decoders.inc.rs");
