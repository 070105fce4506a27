//! Info hints of files (MPI 5.0, section 14.2.8): those that are known by their ROMIO names too.

use crate::info::Info;
use parnass_io::{LONGEST_HOLE_IN_PAGES, Limits, mapping_pays};

/// Whether something is done: collective accesses go through aggregators, or runs that lie close together are accessed as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffering {
    Always,
    Never,
    /// Where it is likely to pay.
    Automatic,
}

impl Buffering {
    fn name(self) -> &'static str {
        match self {
            Buffering::Always => "enable",
            Buffering::Never => "disable",
            Buffering::Automatic => "automatic",
        }
    }

    fn of(value: &[u8]) -> Option<Buffering> {
        [Buffering::Always, Buffering::Never, Buffering::Automatic]
            .into_iter()
            .find(|one| value.eq_ignore_ascii_case(one.name().as_bytes()))
    }
}

/// How one process accesses runs that lie close together (data sieving).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sieving {
    pub(super) reads: Buffering,
    pub(super) writes: Buffering,
    /// The most bytes that are read at once, runs and holes.
    pub(super) read_bytes: u64,
    /// The most bytes that are mapped at once.
    pub(super) write_bytes: u64,
}

impl Sieving {
    /// The stretches that are read as one. To read a hole of a page costs about as much as a further call.
    pub(super) fn of_reads(&self) -> Limits {
        let hole_bytes = match self.reads {
            Buffering::Always => self.read_bytes,
            Buffering::Never => 0,
            Buffering::Automatic => LONGEST_HOLE_IN_PAGES,
        };
        Limits { hole_bytes, span_bytes: self.read_bytes }
    }

    /// The stretches that may be written as one.
    pub(super) fn of_writes(&self) -> Limits {
        let hole_bytes = if self.writes == Buffering::Never { 0 } else { LONGEST_HOLE_IN_PAGES };
        Limits { hole_bytes, span_bytes: self.write_bytes }
    }

    /// Whether so many runs are written as one.
    pub(super) fn maps(&self, runs: u64, span_bytes: u64) -> bool {
        match self.writes {
            Buffering::Always => runs > 1,
            Buffering::Never => false,
            Buffering::Automatic => mapping_pays(runs, span_bytes),
        }
    }
}

/// The hints in use.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    /// How many processes write and read for all in a collective access.
    pub(super) aggregators: u32,
    /// How many bytes each of them handles at once.
    pub(super) buffer_bytes: u64,
    pub(super) buffered_reads: Buffering,
    pub(super) buffered_writes: Buffering,
    pub(super) sieving: Sieving,
    /// Permissions of a file that is created.
    pub(super) permissions: Option<u32>,
    /// Hints that are known to the standard and change nothing here, as the program gave them.
    kept: Vec<(&'static [u8], Vec<u8>)>,
}

/// More aggregators than this are not used unless asked for.
const MOST_AGGREGATORS: u32 = 8;
const BUFFER_BYTES: u64 = 16 << 20;
/// No more is read or mapped at once, whatever a hint says.
const MOST_AT_ONCE: u64 = 1 << 30;
const SIEVING: Sieving = Sieving {
    reads: Buffering::Automatic,
    writes: Buffering::Automatic,
    read_bytes: 4 << 20,
    write_bytes: 512 << 10,
};

/// Hints of the standard that are kept and told.
const KEPT: [&[u8]; 12] = [
    b"access_style",
    b"collective_buffering",
    b"cb_block_size",
    b"chunked",
    b"chunked_item",
    b"chunked_size",
    b"filename",
    b"io_node_list",
    b"nb_proc",
    b"num_io_nodes",
    b"striping_factor",
    b"striping_unit",
];

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.trim().parse().ok().filter(|&number| number > 0)
}

impl Hints {
    /// For a file that so many processes have open.
    pub(super) fn new(size: u32) -> Hints {
        Hints {
            aggregators: size.clamp(1, MOST_AGGREGATORS),
            buffer_bytes: BUFFER_BYTES,
            buffered_reads: Buffering::Automatic,
            buffered_writes: Buffering::Automatic,
            sieving: SIEVING,
            permissions: None,
            kept: Vec::new(),
        }
    }

    /// Takes over the hints that are known and make sense; others are ignored, as the standard asks.
    pub(super) fn update(&mut self, info: &Info, size: u32) {
        for (key, value) in info.iter() {
            match key {
                b"cb_nodes" => {
                    if let Some(nodes) = number(value) {
                        self.aggregators = nodes.min(u64::from(size)) as u32;
                    }
                }
                b"cb_buffer_size" => self.buffer_bytes = number(value).unwrap_or(self.buffer_bytes),
                b"romio_cb_read" => self.buffered_reads = Buffering::of(value).unwrap_or(self.buffered_reads),
                b"romio_cb_write" => {
                    self.buffered_writes = Buffering::of(value).unwrap_or(self.buffered_writes)
                }
                b"romio_ds_read" => self.sieving.reads = Buffering::of(value).unwrap_or(self.sieving.reads),
                b"romio_ds_write" => {
                    self.sieving.writes = Buffering::of(value).unwrap_or(self.sieving.writes)
                }
                b"ind_rd_buffer_size" => {
                    self.sieving.read_bytes =
                        number(value).map_or(self.sieving.read_bytes, |bytes| bytes.min(MOST_AT_ONCE));
                }
                b"ind_wr_buffer_size" => {
                    self.sieving.write_bytes =
                        number(value).map_or(self.sieving.write_bytes, |bytes| bytes.min(MOST_AT_ONCE));
                }
                b"collective_buffering" if matches!(value, b"true" | b"false") => {
                    let mode = if value == b"true" { Buffering::Always } else { Buffering::Never };
                    (self.buffered_reads, self.buffered_writes) = (mode, mode);
                    self.keep(b"collective_buffering", value);
                }
                b"file_perm" => {
                    let text = std::str::from_utf8(value).ok();
                    let permissions = text.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
                    self.permissions = permissions.filter(|&bits| bits <= 0o7777).or(self.permissions);
                }
                _ => {
                    if let Some(known) =
                        KEPT.into_iter().find(|known| *known == key && *known != b"collective_buffering")
                    {
                        self.keep(known, value);
                    }
                }
            }
        }
    }

    fn keep(&mut self, key: &'static [u8], value: &[u8]) {
        self.kept.retain(|(kept, _)| *kept != key);
        self.kept.push((key, value.to_vec()));
    }

    /// MPI_File_get_info.
    pub(super) fn info(&self) -> Info {
        let mut info = Info::new();
        let mut set = |key: &[u8], value: &[u8]| {
            info.set(key, value).expect(
                "a known hint has a valid key, and a value that came from an info object or is short",
            );
        };
        set(b"cb_nodes", self.aggregators.to_string().as_bytes());
        set(b"cb_buffer_size", self.buffer_bytes.to_string().as_bytes());
        set(b"romio_cb_read", self.buffered_reads.name().as_bytes());
        set(b"romio_cb_write", self.buffered_writes.name().as_bytes());
        set(b"romio_ds_read", self.sieving.reads.name().as_bytes());
        set(b"romio_ds_write", self.sieving.writes.name().as_bytes());
        set(b"ind_rd_buffer_size", self.sieving.read_bytes.to_string().as_bytes());
        set(b"ind_wr_buffer_size", self.sieving.write_bytes.to_string().as_bytes());
        if let Some(permissions) = self.permissions {
            set(b"file_perm", format!("{permissions:o}").as_bytes());
        }
        for (key, value) in &self.kept {
            set(key, value);
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_that_make_sense_are_told_again() {
        let mut given = Info::new();
        for (key, value) in [
            ("cb_nodes", "99"),
            ("cb_buffer_size", "0"),
            ("romio_cb_write", "ENABLE"),
            ("romio_cb_read", "perhaps"),
            ("romio_ds_read", "disable"),
            ("romio_ds_write", ""),
            ("ind_rd_buffer_size", "65536"),
            ("ind_wr_buffer_size", "-1"),
            ("striping_unit", "65536"),
            ("file_perm", "640"),
            ("colour", "green"),
        ] {
            given.set(key.as_bytes(), value.as_bytes()).unwrap();
        }
        let mut hints = Hints::new(4);
        hints.update(&given, 4);
        let told = hints.info();
        let value =
            |key: &str| told.value(key.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned());
        assert_eq!(value("cb_nodes").as_deref(), Some("4"));
        assert_eq!(value("cb_buffer_size").as_deref(), Some("16777216"));
        assert_eq!(value("romio_cb_write").as_deref(), Some("enable"));
        assert_eq!(value("romio_cb_read").as_deref(), Some("automatic"));
        assert_eq!(value("romio_ds_read").as_deref(), Some("disable"));
        assert_eq!(value("romio_ds_write").as_deref(), Some("automatic"));
        assert_eq!(value("ind_rd_buffer_size").as_deref(), Some("65536"));
        assert_eq!(value("ind_wr_buffer_size").as_deref(), Some("524288"));
        assert_eq!(value("striping_unit").as_deref(), Some("65536"));
        assert_eq!(value("file_perm").as_deref(), Some("640"));
        assert_eq!(value("colour"), None);
    }

    #[test]
    fn sieving_is_where_it_pays_or_as_the_hints_say() {
        let mut sieving = SIEVING;
        assert!(sieving.maps(1000, 8000) && !sieving.maps(1000, 8_000_000) && !sieving.maps(2, 16));
        sieving.writes = Buffering::Always;
        assert!(sieving.maps(2, 4_000_000) && !sieving.maps(1, 8));
        sieving.writes = Buffering::Never;
        assert!(!sieving.maps(1000, 8000));
        assert_eq!(sieving.of_writes().hole_bytes, 0);
        sieving.reads = Buffering::Always;
        assert_eq!(sieving.of_reads().hole_bytes, sieving.read_bytes);
    }

    #[test]
    fn collective_buffering_is_for_both_directions() {
        let mut given = Info::new();
        given.set(b"collective_buffering", b"false").unwrap();
        let mut hints = Hints::new(2);
        hints.update(&given, 2);
        assert_eq!((hints.buffered_reads, hints.buffered_writes), (Buffering::Never, Buffering::Never));
    }
}
