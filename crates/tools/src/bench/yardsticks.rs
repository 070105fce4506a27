//! The yardsticks: programs of `benches/`, compiled into this one as text; and what each value that they print means.

use serde::{Deserialize, Serialize};

use super::libraries::Way;

/// A program with the number of ranks that it runs on.
#[derive(Debug)]
pub struct Yardstick {
    /// Its name; its source is `NAME.c`.
    pub name: &'static str,
    /// On how many ranks; 0 for one that is no MPI program.
    pub ranks: u32,
    /// What it shows, for `--list`.
    pub shows: &'static str,
}

impl Yardstick {
    /// Whether it shows something where this is between the ranks.
    pub fn runs_over(&self, way: Way) -> bool {
        match way {
            Way::Memory => self.name != FLOOR_TCP,
            Way::Tcp | Way::Veth => {
                [LINE, FLOOR_TCP].contains(&self.name) || self.ranks == 2 && self.name != "threads"
            }
        }
    }
}

const fn yardstick(name: &'static str, ranks: u32, shows: &'static str) -> Yardstick {
    Yardstick { name, ranks, shows }
}

/// All of them, in the order in which they run.
pub const YARDSTICKS: &[Yardstick] = &[
    yardstick(
        LINE,
        0,
        "how near two cores are to each other; the yardsticks of two ranks measure when they are",
    ),
    yardstick(FLOOR, 0, "what the machine can do without MPI"),
    yardstick(FLOOR_TCP, 0, "what the machine's TCP can do without MPI"),
    yardstick("pingpong", 2, "half round trip and bandwidth, 0 B to 64 MiB"),
    yardstick("rate", 2, "message rate, one way and both ways, and one message after the other"),
    yardstick("exchange", 2, "two ranks exchange, 8 B to 1 MiB"),
    yardstick(
        "patterns",
        2,
        "many messages at once, probes, persistent requests, collectives of blocks that differ",
    ),
    yardstick("programs", 2, "whole programs in little: what a step of each takes"),
    yardstick("programs", 4, "the same programs on four ranks"),
    yardstick("overlap", 2, "share of a transfer that disappears behind computation"),
    yardstick("match", 2, "many posted receives, many unexpected messages"),
    yardstick("datatypes", 2, "derived datatypes against contiguous bytes and packing by hand"),
    yardstick("onesided", 2, "one-sided accesses, also while the target computes"),
    yardstick("objects", 2, "communicators, windows and types made and freed, attributes"),
    yardstick("threads", 2, "two threads a rank, each with its own communicator"),
    yardstick("collectives", 2, "six collectives, 8 B to 8 MiB"),
    yardstick("collectives", 16, "six collectives, 8 B"),
    yardstick("guest", 64, "one rank computes while 63 wait"),
    yardstick("pair", 64, "two ranks exchange while 62 wait"),
    yardstick("exchange", 8, "all pairs exchange"),
    yardstick("exchange", 16, "all pairs exchange"),
    yardstick("exchange", 64, "all pairs exchange"),
    yardstick(START, 1, "a job that only initialises"),
    yardstick(START, 64, "a job that only initialises"),
    yardstick("memory", 64, "memory after start"),
];

/// The program that tells the others how near two cores can be.
pub const LINE: &str = "line";
/// What it prints.
pub const LINE_VALUE: &str = "floor-cache-line";
const FLOOR: &str = "floor";
/// The program that measures the machine's TCP, between the two hosts if there are such.
pub const FLOOR_TCP: &str = "floor_tcp";
/// The programs that measure the machine.
pub const FLOORS: &[&str] = &[LINE, FLOOR, FLOOR_TCP];
/// The program whose whole run is timed.
pub const START: &str = "init";

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        /// The files of `benches/` that the programs are compiled from, by name.
        pub const SOURCES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../benches/", $name)))),*];
    };
}

sources![
    "bench.h",
    "collectives.c",
    "datatypes.c",
    "exchange.c",
    "floor.c",
    "floor_tcp.c",
    "guest.c",
    "init.c",
    "line.c",
    "line.h",
    "match.c",
    "memory.c",
    "objects.c",
    "onesided.c",
    "overlap.c",
    "pair.c",
    "patterns.c",
    "pingpong.c",
    "programs.c",
    "rate.c",
    "threads.c",
];

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times, memory.
    Less,
    /// Rates, shares.
    More,
}

/// What a value means.
#[derive(Debug)]
pub struct Measure {
    /// As the yardsticks print it.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// Which is better.
    pub better: Better,
}

const fn less(name: &'static str, title: &'static str) -> Measure {
    Measure { name, title, better: Better::Less }
}

const fn more(name: &'static str, title: &'static str) -> Measure {
    Measure { name, title, better: Better::More }
}

/// Every value that a yardstick may print.
pub const MEASURES: &[Measure] = &[
    less("floor-start", "start of a process"),
    less(LINE_VALUE, "one cache line, one way"),
    less("floor-two-lines", "half a round trip of two cache lines, one for each way"),
    more("floor-copy", "copy by one core"),
    more("floor-kernel-copy", "copy by the kernel (process_vm_readv)"),
    more("floor-copy-by-two", "copy by two cores together"),
    more("floor-copy-after-other", "copy of what the other core has just written"),
    less("floor-tcp-half-round-trip", "half round trip over TCP, two threads that spin"),
    more("floor-tcp-bandwidth", "one stream over TCP"),
    less("half-round-trip", "half round trip, the buffer written anew"),
    less("half-round-trip-fresh", "half round trip, other memory for each message"),
    more("bandwidth", "bandwidth, the buffer written anew"),
    more("message-rate", "message rate, one way"),
    more("message-rate-both-ways", "message rate, both ways together"),
    less("stream", "one message after the other, MPI_Send to MPI_Recv"),
    more("overlap-receiver-computes", "overlap, the receiver computes"),
    more("overlap-receiver-computes-late", "overlap, the receiver computes, its receive posted late"),
    more("overlap-sender-computes", "overlap, the sender computes"),
    less("together-receiver-computes", "transfer and 0.2 ns of work a byte, the receiver computes"),
    less("together-receiver-computes-late", "the same, its receive posted late"),
    less("together-sender-computes", "the same, the sender computes"),
    less("step-exchange", "exchange beside 1 ns of work a byte of both ranks"),
    less("step-iallreduce", "MPI_Iallreduce beside the same"),
    less("match-none", "half round trip, nothing else there"),
    less("match-posted", "half round trip, 10,000 other receives posted"),
    less("match-posted-wildcards", "half round trip, 10,000 posted, wildcards among them"),
    less("match-unexpected", "half round trip, 10,000 unexpected messages queued"),
    less("match-unexpected-any-source", "half round trip from any source, 10,000 unexpected"),
    less("flood-10000-queue", "to queue one of 10,000 unexpected messages"),
    less("flood-10000-drain", "to receive one of 10,000 unexpected messages, last first"),
    less("flood-10000-memory", "the receiver's memory for 10,000 unexpected messages"),
    less("flood-100000-queue", "to queue one of 100,000 unexpected messages"),
    less("flood-100000-drain", "to receive one of 100,000 unexpected messages, last first"),
    less("flood-100000-memory", "the receiver's memory for 100,000 unexpected messages"),
    less("by-hand-vector", "half round trip packed by hand: blocks with gaps"),
    less("by-hand-column", "half round trip packed by hand: matrix column"),
    less("by-hand-struct", "half round trip packed by hand: structures"),
    less("by-hand-indexed", "half round trip packed by hand: irregular blocks"),
    less("datatype-vector", "half round trip by datatype: blocks with gaps"),
    less("datatype-column", "half round trip by datatype: matrix column"),
    less("datatype-struct", "half round trip by datatype: structures"),
    less("datatype-indexed", "half round trip by datatype: irregular blocks"),
    less("datatype-vector-to-contiguous", "blocks with gaps, over contiguous bytes"),
    less("datatype-column-to-contiguous", "matrix column, over contiguous bytes"),
    less("datatype-struct-to-contiguous", "structures, over contiguous bytes"),
    less("datatype-indexed-to-contiguous", "irregular blocks, over contiguous bytes"),
    less("datatype-vector-to-by-hand", "blocks with gaps, over packing by hand"),
    less("datatype-column-to-by-hand", "matrix column, over packing by hand"),
    less("datatype-struct-to-by-hand", "structures, over packing by hand"),
    less("datatype-indexed-to-by-hand", "irregular blocks, over packing by hand"),
    less("put-allocated", "put and flush, allocated window"),
    less("get-allocated", "get and flush, allocated window"),
    less("accumulate-allocated", "accumulate and flush, allocated window"),
    less("fetch-and-op-allocated", "fetch and op and flush, allocated window"),
    less("compare-and-swap-allocated", "compare and swap and flush, allocated window"),
    less("put-computing-allocated", "put and flush, allocated window, the target computes"),
    less("get-computing-allocated", "get and flush, allocated window, the target computes"),
    less("accumulate-computing-allocated", "accumulate and flush, allocated window, the target computes"),
    less("fetch-and-op-computing-allocated", "fetch and op and flush, allocated window, the target computes"),
    less(
        "compare-and-swap-computing-allocated",
        "compare and swap and flush, allocated window, the target computes",
    ),
    more("put-bandwidth-allocated", "put and flush, allocated window"),
    more("get-bandwidth-allocated", "get and flush, allocated window"),
    less("lock-unlock-allocated", "lock and unlock, allocated window"),
    less("fence-allocated", "fence, allocated window"),
    less("put-created", "put and flush, created window"),
    less("get-created", "get and flush, created window"),
    less("accumulate-created", "accumulate and flush, created window"),
    less("fetch-and-op-created", "fetch and op and flush, created window"),
    less("compare-and-swap-created", "compare and swap and flush, created window"),
    less("put-computing-created", "put and flush, created window, the target computes"),
    less("get-computing-created", "get and flush, created window, the target computes"),
    less("accumulate-computing-created", "accumulate and flush, created window, the target computes"),
    less("fetch-and-op-computing-created", "fetch and op and flush, created window, the target computes"),
    less(
        "compare-and-swap-computing-created",
        "compare and swap and flush, created window, the target computes",
    ),
    more("put-bandwidth-created", "put and flush, created window"),
    more("get-bandwidth-created", "get and flush, created window"),
    less("lock-unlock-created", "lock and unlock, created window"),
    less("fence-created", "fence, created window"),
    less("put-fence-created", "both put, and a fence, created window"),
    less("put-both-created", "both put and flush at once, created window"),
    less("fetch-and-op-both-created", "both fetch and op and flush at once, created window"),
    less("put-lent", "put and flush, window on memory of MPI_Alloc_mem"),
    less("duplicate-communicator", "communicator duplicated and freed"),
    less("duplicate-communicator-and-use", "communicator duplicated, a barrier on it, and freed"),
    less("split-communicator", "communicator split and freed"),
    less("create-window", "window created and freed"),
    less("allocate-window", "window allocated and freed"),
    less("make-vector-type", "vector type made and freed"),
    less("make-subarray-type", "subarray type made and freed"),
    less("get-attribute", "attribute of a communicator read"),
    less("exchange-nowhere", "MPI_Sendrecv with MPI_PROC_NULL on both sides"),
    less("thread-half-round-trip", "half round trip, one thread of a rank that may have several"),
    more("thread-exchange-rate", "two threads a rank, exchanges one at a time"),
    more("thread-exchange-rate-windows", "two threads a rank, exchanges in windows of 64"),
    less("barrier-2-ranks", "barrier"),
    less("bcast-2-ranks", "broadcast"),
    less("allreduce-2-ranks", "allreduce"),
    less("allgather-2-ranks", "allgather"),
    less("alltoall-2-ranks", "alltoall"),
    less("reduce-scatter-2-ranks", "reduce-scatter"),
    less("barrier-16-ranks", "barrier, 16 ranks"),
    less("bcast-16-ranks", "broadcast, 16 ranks"),
    less("allreduce-16-ranks", "allreduce, 16 ranks"),
    less("allgather-16-ranks", "allgather, 16 ranks"),
    less("alltoall-16-ranks", "alltoall, 16 ranks"),
    less("reduce-scatter-16-ranks", "reduce-scatter, 16 ranks"),
    less("slow-down-by-63-waiting", "slow-down of one that computes while 63 wait"),
    less("cores-used-by-63-waiting", "cores that the 63 keep busy"),
    less("half-round-trip-among-62-waiting", "half round trip of two while 62 wait"),
    less("exchange", "both send and receive at once, MPI_Sendrecv"),
    less("exchange-nonblocking", "both send and receive at once, MPI_Isend and MPI_Irecv"),
    less("exchange-send-first", "both send and receive at once, MPI_Isend and then MPI_Recv"),
    less("exchange-replace", "both send and receive at once, MPI_Sendrecv_replace"),
    less("many-exchanged", "32 messages each way at once, MPI_Waitall"),
    less("many-exchanged-one-by-one", "32 messages each way at once, MPI_Waitany"),
    less("probed", "half round trip, MPI_Probe and MPI_Recv"),
    less("probed-matched", "half round trip, MPI_Mprobe and MPI_Mrecv"),
    less("exchange-persistent", "both send and receive at once, persistent requests"),
    less("alltoallv-2-ranks", "alltoallv"),
    less("allgatherv-2-ranks", "allgatherv"),
    less("gatherv-2-ranks", "gatherv"),
    less("scatterv-2-ranks", "scatterv"),
    less("exchange-anew", "both send and receive at once, in memory allocated anew"),
    less("ibcast-2-ranks", "MPI_Ibcast and MPI_Wait"),
    less("iallreduce-2-ranks", "MPI_Iallreduce and MPI_Wait"),
    less("bcast-changing-2-ranks", "broadcasts whose lengths change"),
    less("allreduce-changing-2-ranks", "allreduces whose lengths change"),
    less("alltoallv-changing-2-ranks", "alltoallvs whose lengths change"),
    less("program-gradients-2-ranks", "conjugate gradients, 2 ranks"),
    less("program-block-2-ranks", "heat in a block, 2 ranks"),
    less("program-transform-2-ranks", "Fourier transforms, 2 ranks"),
    less("program-sorting-2-ranks", "sorting by samples, 2 ranks"),
    less("program-farm-2-ranks", "task farm, 2 ranks"),
    less("program-elimination-2-ranks", "Gaussian elimination, 2 ranks"),
    less("program-boxes-2-ranks", "particles in boxes, 2 ranks"),
    less("program-gradients-4-ranks", "conjugate gradients, 4 ranks"),
    less("program-block-4-ranks", "heat in a block, 4 ranks"),
    less("program-transform-4-ranks", "Fourier transforms, 4 ranks"),
    less("program-sorting-4-ranks", "sorting by samples, 4 ranks"),
    less("program-farm-4-ranks", "task farm, 4 ranks"),
    less("program-elimination-4-ranks", "Gaussian elimination, 4 ranks"),
    less("program-boxes-4-ranks", "particles in boxes, 4 ranks"),
    less("exchange-8-ranks", "all pairs exchange, 8 ranks"),
    less("exchange-16-ranks", "all pairs exchange, 16 ranks"),
    less("exchange-64-ranks", "all pairs exchange, 64 ranks"),
    less("start-to-end-1-ranks", "start to end, 1 rank"),
    less("start-to-end-64-ranks", "start to end, 64 ranks"),
    less("memory-64-ranks", "memory of 64 ranks after start"),
];

/// What the value of this name means.
pub fn measure(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|measure| measure.name == name)
}

/// How a plot shows its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Over the size of the message, on logarithmic axes.
    Lines,
    /// A bar for each library.
    Bars,
}

/// One plot: its values, and the floors that it shows with them.
#[derive(Debug)]
pub struct Plot {
    /// What stands above it.
    pub title: &'static str,
    /// Lines or bars.
    pub form: Form,
    /// The values; lines have one.
    pub names: &'static [&'static str],
    /// Floors to draw too.
    pub floors: &'static [&'static str],
}

/// A part of the report.
#[derive(Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// What the reader has to know.
    pub note: &'static str,
    /// Its plots.
    pub plots: &'static [Plot],
    /// Its values that no plot shows.
    pub others: &'static [&'static str],
}

const fn lines(title: &'static str, names: &'static [&'static str], floors: &'static [&'static str]) -> Plot {
    Plot { title, form: Form::Lines, names, floors }
}

const fn bars(title: &'static str, names: &'static [&'static str]) -> Plot {
    Plot { title, form: Form::Bars, names, floors: &[] }
}

/// The report from top to bottom.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Latency",
        note: "Half round trip between two ranks, each bound to a core. The time includes that the sender writes its message.",
        plots: &[
            lines(
                "Half round trip, one buffer",
                &["half-round-trip"],
                &["floor-cache-line", "floor-two-lines", "floor-tcp-half-round-trip"],
            ),
            lines(
                "Half round trip, other memory for each message",
                &["half-round-trip-fresh"],
                &["floor-two-lines"],
            ),
        ],
        others: &[],
    },
    Section {
        title: "Bandwidth and message rate",
        note: "One message at a time to a receiver that waits; from the call of MPI_Send until both sides have returned. Rates: windows of 64 messages of 8 B. One after the other: a rank sends without an answer, the other one receives.",
        plots: &[
            lines(
                "Bandwidth",
                &["bandwidth"],
                &["floor-copy-after-other", "floor-kernel-copy", "floor-copy-by-two", "floor-tcp-bandwidth"],
            ),
            bars("Message rate", &["message-rate", "message-rate-both-ways"]),
            lines("One message after the other", &["stream"], &["floor-cache-line"]),
        ],
        others: &[],
    },
    Section {
        title: "Exchange",
        note: "Both ranks send and receive at once, and have written what they send just before. Time until both have what they receive.",
        plots: &[
            lines("Exchange by MPI_Sendrecv", &["exchange"], &["floor-two-lines"]),
            lines("Exchange by nonblocking calls", &["exchange-nonblocking"], &["floor-two-lines"]),
            lines("MPI_Isend, MPI_Recv and MPI_Wait", &["exchange-send-first"], &["floor-two-lines"]),
            lines("MPI_Sendrecv_replace", &["exchange-replace"], &["floor-two-lines"]),
        ],
        others: &[],
    },
    Section {
        title: "Patterns",
        note: "What programs do besides one message at a time. Time until all has been sent and received; for probes, half a round trip.",
        plots: &[
            lines("32 messages each way at once, MPI_Waitall", &["many-exchanged"], &[]),
            lines("The same, MPI_Waitany", &["many-exchanged-one-by-one"], &[]),
            lines("MPI_Probe and MPI_Recv", &["probed"], &["floor-cache-line"]),
            lines("MPI_Mprobe and MPI_Mrecv", &["probed-matched"], &["floor-cache-line"]),
            lines("Exchange by persistent requests", &["exchange-persistent"], &["floor-two-lines"]),
            lines("Alltoallv, 2 ranks", &["alltoallv-2-ranks"], &["floor-two-lines"]),
            lines("Allgatherv, 2 ranks", &["allgatherv-2-ranks"], &["floor-two-lines"]),
            lines("Gatherv, 2 ranks", &["gatherv-2-ranks"], &["floor-cache-line"]),
            lines("Scatterv, 2 ranks", &["scatterv-2-ranks"], &["floor-cache-line"]),
            lines("Exchange in memory allocated anew", &["exchange-anew"], &[]),
            bars(
                "MPI_Ibcast and MPI_Iallreduce of 400 B, waited for",
                &["ibcast-2-ranks", "iallreduce-2-ranks"],
            ),
            bars(
                "Collectives of 8 to 800 B, another length each time",
                &["bcast-changing-2-ranks", "allreduce-changing-2-ranks", "alltoallv-changing-2-ranks"],
            ),
        ],
        others: &[],
    },
    Section {
        title: "Whole programs",
        note: "Programs in little, and what a step of each takes: computation and communication. The work is the same on any number of ranks, and the results are checked.",
        plots: &[
            bars(
                "On two ranks",
                &[
                    "program-gradients-2-ranks",
                    "program-block-2-ranks",
                    "program-transform-2-ranks",
                    "program-sorting-2-ranks",
                    "program-farm-2-ranks",
                    "program-elimination-2-ranks",
                    "program-boxes-2-ranks",
                ],
            ),
            bars(
                "On four ranks",
                &[
                    "program-gradients-4-ranks",
                    "program-block-4-ranks",
                    "program-transform-4-ranks",
                    "program-sorting-4-ranks",
                    "program-farm-4-ranks",
                    "program-elimination-4-ranks",
                    "program-boxes-4-ranks",
                ],
            ),
        ],
        others: &[],
    },
    Section {
        title: "Overlap",
        note: "The share of the transfer's time that disappears behind a computation without MPI calls, 1 is all of it; and the time of both together where the computation is the same for all, 0.2 ns a byte. Steps of a program: both ranks begin to exchange or to reduce, compute 1 ns a byte, and wait.",
        plots: &[
            bars(
                "Overlap",
                &["overlap-receiver-computes", "overlap-receiver-computes-late", "overlap-sender-computes"],
            ),
            bars(
                "Transfer and computation together",
                &[
                    "together-receiver-computes",
                    "together-receiver-computes-late",
                    "together-sender-computes",
                ],
            ),
            bars("Steps of a program", &["step-exchange", "step-iallreduce"]),
        ],
        others: &[],
    },
    Section {
        title: "More ranks than cores",
        note: "Ranks are bound only where there is a core for each. A library that waits by spinning takes the cores from those who have work.",
        plots: &[
            bars("Two exchange 8 B while 62 wait", &["half-round-trip-among-62-waiting"]),
            bars("One computes while 63 wait", &["slow-down-by-63-waiting", "cores-used-by-63-waiting"]),
            bars("All pairs exchange", &["exchange-8-ranks", "exchange-16-ranks", "exchange-64-ranks"]),
            bars(
                "Collectives of 8 B on 16 ranks",
                &[
                    "barrier-16-ranks",
                    "bcast-16-ranks",
                    "allreduce-16-ranks",
                    "allgather-16-ranks",
                    "alltoall-16-ranks",
                    "reduce-scatter-16-ranks",
                ],
            ),
        ],
        others: &[],
    },
    Section {
        title: "Collectives on two ranks",
        note: "Time of one call in a row of calls, of the slowest rank.",
        plots: &[
            bars("Barrier", &["barrier-2-ranks"]),
            lines("Broadcast", &["bcast-2-ranks"], &[]),
            lines("Allreduce", &["allreduce-2-ranks"], &[]),
            lines("Allgather", &["allgather-2-ranks"], &[]),
            lines("Alltoall", &["alltoall-2-ranks"], &[]),
            lines("Reduce-scatter", &["reduce-scatter-2-ranks"], &[]),
        ],
        others: &[],
    },
    Section {
        title: "Matching",
        note: "Half round trip of 8 B with many receives posted or many messages queued; and a flood of unexpected messages, received last first.",
        plots: &[
            bars(
                "Half round trip of 8 B",
                &[
                    "match-none",
                    "match-posted",
                    "match-posted-wildcards",
                    "match-unexpected",
                    "match-unexpected-any-source",
                ],
            ),
            bars(
                "Unexpected messages, each",
                &["flood-10000-queue", "flood-10000-drain", "flood-100000-queue", "flood-100000-drain"],
            ),
        ],
        others: &["flood-10000-memory", "flood-100000-memory"],
    },
    Section {
        title: "Derived datatypes",
        note: "Half round trip of data that does not lie in one piece.",
        plots: &[
            bars(
                "Time over that of contiguous bytes",
                &[
                    "datatype-vector-to-contiguous",
                    "datatype-column-to-contiguous",
                    "datatype-struct-to-contiguous",
                    "datatype-indexed-to-contiguous",
                ],
            ),
            bars(
                "Time over that of packing by hand",
                &[
                    "datatype-vector-to-by-hand",
                    "datatype-column-to-by-hand",
                    "datatype-struct-to-by-hand",
                    "datatype-indexed-to-by-hand",
                ],
            ),
        ],
        others: &[
            "datatype-vector",
            "datatype-column",
            "datatype-struct",
            "datatype-indexed",
            "by-hand-vector",
            "by-hand-column",
            "by-hand-struct",
            "by-hand-indexed",
        ],
    },
    Section {
        title: "One-sided communication",
        note: "Rank 0 reaches into the memory of rank 1: 8 B and a flush, while rank 1 waits and while it computes and calls MPI every 2 ms; longer ones, and ways to synchronise.",
        plots: &[
            bars(
                "8 B, allocated window",
                &[
                    "put-allocated",
                    "get-allocated",
                    "accumulate-allocated",
                    "fetch-and-op-allocated",
                    "compare-and-swap-allocated",
                ],
            ),
            bars(
                "8 B, allocated window, the target computes",
                &[
                    "put-computing-allocated",
                    "get-computing-allocated",
                    "accumulate-computing-allocated",
                    "fetch-and-op-computing-allocated",
                    "compare-and-swap-computing-allocated",
                ],
            ),
            lines("Put, allocated window", &["put-bandwidth-allocated"], &["floor-copy"]),
            lines("Get, allocated window", &["get-bandwidth-allocated"], &["floor-copy"]),
            bars("Synchronisation, allocated window", &["lock-unlock-allocated", "fence-allocated"]),
            bars(
                "8 B, created window",
                &[
                    "put-created",
                    "get-created",
                    "accumulate-created",
                    "fetch-and-op-created",
                    "compare-and-swap-created",
                ],
            ),
            bars(
                "8 B, created window, the target computes",
                &[
                    "put-computing-created",
                    "get-computing-created",
                    "accumulate-computing-created",
                    "fetch-and-op-computing-created",
                    "compare-and-swap-computing-created",
                ],
            ),
            lines("Put, created window", &["put-bandwidth-created"], &["floor-copy"]),
            lines("Get, created window", &["get-bandwidth-created"], &["floor-copy"]),
            bars("Synchronisation, created window", &["lock-unlock-created", "fence-created"]),
            lines("Both put, and a fence, created window", &["put-fence-created"], &["floor-two-lines"]),
            lines("Both put and flush at once, created window", &["put-both-created"], &["floor-two-lines"]),
            bars("Both fetch and op at once, created window", &["fetch-and-op-both-created"]),
            bars("8 B, window on memory of MPI_Alloc_mem", &["put-lent"]),
        ],
        others: &[],
    },
    Section {
        title: "Objects",
        note: "Communicators and windows are made and freed by two ranks together, in a row; types, attributes and what goes nowhere concern one rank alone.",
        plots: &[
            bars(
                "Communicators",
                &["duplicate-communicator", "duplicate-communicator-and-use", "split-communicator"],
            ),
            bars("Windows of 64 KiB", &["create-window", "allocate-window"]),
            bars("Datatypes", &["make-vector-type", "make-subarray-type"]),
            bars("Calls that go nowhere", &["get-attribute", "exchange-nowhere"]),
        ],
        others: &[],
    },
    Section {
        title: "Threads",
        note: "MPI_THREAD_MULTIPLE: two threads in each of two ranks, each pair with a communicator of its own.",
        plots: &[
            bars("Exchanges of 8 B", &["thread-exchange-rate", "thread-exchange-rate-windows"]),
            bars("Half round trip of 8 B, one thread", &["thread-half-round-trip"]),
        ],
        others: &[],
    },
    Section {
        title: "Start and memory",
        note: "A job that only initialises and finalizes, from the call of mpiexec to its return; the sum of the proportional set sizes of 64 ranks.",
        plots: &[
            bars("Start to end", &["start-to-end-1-ranks", "start-to-end-64-ranks"]),
            bars("Memory", &["memory-64-ranks"]),
        ],
        others: &[],
    },
    Section {
        title: "The machine",
        note: "What the cores and the kernel can do without MPI, measured in the same rounds.",
        plots: &[],
        others: &[
            "floor-cache-line",
            "floor-two-lines",
            "floor-copy",
            "floor-copy-by-two",
            "floor-copy-after-other",
            "floor-kernel-copy",
            "floor-start",
            "floor-tcp-half-round-trip",
            "floor-tcp-bandwidth",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_yardstick_has_its_source_and_every_source_its_yardstick() {
        for yardstick in YARDSTICKS {
            let file = format!("{}.c", yardstick.name);
            assert!(SOURCES.iter().any(|(name, _)| *name == file), "{file}");
        }
        for (name, _) in SOURCES.iter().filter(|(name, _)| name.ends_with(".c")) {
            assert!(YARDSTICKS.iter().any(|yardstick| format!("{}.c", yardstick.name) == *name), "{name}");
        }
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches");
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            // What instructions.c does is counted, by instructions.py, and not timed.
            let is_source = (file.ends_with(".c") || file.ends_with(".h")) && file != "instructions.c";
            assert!(!is_source || SOURCES.iter().any(|(name, _)| *name == file), "{file} is not compiled in");
        }
    }

    #[test]
    fn every_value_has_one_place_in_the_report() {
        let mut shown: Vec<&str> = SECTIONS
            .iter()
            .flat_map(|section| {
                let plotted = section.plots.iter().flat_map(|plot| plot.names);
                plotted.chain(section.others)
            })
            .copied()
            .collect();
        shown.sort_unstable();
        let mut known: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
        known.sort_unstable();
        assert_eq!(shown, known);
        let plots = SECTIONS.iter().flat_map(|section| section.plots);
        for plot in plots {
            assert!(plot.form == Form::Bars || plot.names.len() == 1, "{}", plot.title);
            assert!(plot.floors.iter().all(|name| measure(name).is_some()), "{}", plot.title);
        }
    }
}
