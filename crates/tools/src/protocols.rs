//! `parnass info --protocols` and `--tunables`: what is in force here, where it came from, and why.

use std::fmt::Write as _;

use parnass_tunables::{self as tunables, Settings, TABLE};
use serde_json::{Value, json};

use crate::info::{Facts, limit, row};
use parnass_mpi::{CROWD, EXCHANGED_IN_MAILBOX, EXCHANGED_MOST, copies_once, piped_most};

/// A value with its name and where it came from: "spins = 8000 (default)".
fn chosen(settings: &Settings, index: usize) -> String {
    let (value, origin) = settings.of(index);
    format!("{} = {} ({origin})", TABLE[index].name, TABLE[index].show(value))
}

/// How messages of each size travel, and how ranks wait.
pub fn text(facts: &Facts) -> String {
    let settings = &facts.decision.settings;
    let chosen = |index| chosen(settings, index);
    let mut text = String::new();
    let out = &mut text;
    let _ = writeln!(out, "how a message travels between two ranks of this machine");
    for protocol in facts.protocols.rows() {
        row(out, &limit(protocol.limit, "B"), &format!("{:<8} {}", protocol.name, protocol.meaning));
    }
    row(out, "because", &chosen(tunables::DIRECT_THRESHOLD));
    row(out, "", "a record holds 40 B beside the header; a chunk holds at most 64 KiB");
    row(
        out,
        "answers",
        "up to 8 ranks with a processor each answer a message in the memory in which it came, if that is faster",
    );
    row(
        out,
        "exchanges",
        &format!(
            "what is longer than {} KiB, and up to {} KiB if there is room, is copied whole into",
            EXCHANGED_IN_MAILBOX >> 10,
            EXCHANGED_MOST >> 10,
        ),
    );
    row(out, "", "shared memory before its target hears of it, where long messages come and one is awaited");

    let _ = writeln!(out, "\nof the direct ones");
    let switch = chosen(tunables::DIRECT);
    let copy = match (&facts.direct, settings.switch(tunables::DIRECT)) {
        (Ok(()), true) => {
            let most = match piped_most(settings.number(tunables::PIPED_MOST)) {
                u64::MAX => "of any length".to_owned(),
                most => format!("what is longer than {} KiB by the kernel, for both at once", most >> 10),
            };
            row(
                out,
                "both wait",
                "in pieces: one copies in while the other copies out, if each has a processor",
            );
            let chosen = chosen(tunables::PIPED_MOST);
            row(out, "", &format!("{most}; {chosen}"));
            format!("by the kernel (process_vm_readv); {switch}")
        }
        (Ok(()), false) => format!("in pieces; {switch}"),
        (Err(reason), _) => format!("in pieces: the kernel does not allow more ({reason}); {switch}"),
    };
    row(out, "one waits", &copy);
    let helper = chosen(tunables::HELPER_FROM_BYTES);
    row(out, "both compute", &format!("the receiver's helper thread moves the data; {helper}"));
    row(out, "", &format!("{}, {}", chosen(tunables::HELPER_PAUSE), chosen(tunables::HELPER_LOOKS)));

    let usable = facts.processors.usable;
    let _ = writeln!(out, "\nhow a rank waits: {usable} processors are for jobs here");
    let (spins, soon) = (chosen(tunables::SPINS), chosen(tunables::RECEIVE_SPINS));
    row(
        out,
        &format!("up to {usable} ranks"),
        &format!("each has a processor: it looks again and again, then sleeps; {spins}"),
    );
    row(out, "", &format!("a blocking receive looks before it posts an entry; {soon}"));
    let yields = chosen(tunables::YIELDS);
    row(
        out,
        "more ranks",
        &format!("who looks keeps others from working: it lets them run, then sleeps; {yields}"),
    );
    row(out, "", "for a rank that runs on another processor right now it looks 1 us first");
    if copies_once(0) {
        row(
            out,
            "",
            "and from 16 KiB on a message between two processors that are shared is direct, unless its",
        );
        row(out, "", "sender does nothing but send");
    } else {
        row(
            out,
            "",
            &format!(
                "and from 16 KiB on, with more than {CROWD} ranks for each processor, a message between two"
            ),
        );
        row(out, "", "processors that are shared is direct, unless its sender does nothing but send");
    }

    let _ = writeln!(out, "\nwhile a rank computes that others reach over a network");
    row(
        out,
        "what comes",
        &format!("is taken by a thread of its own, the keeper; {}", chosen(tunables::KEEPERS_ROAM)),
    );
    let place = match settings.switch(tunables::KEEPERS_ROAM) {
        true => "it runs on any processor of the job, and keeps away from where it meets its rank computing",
        false => "it runs where its rank does",
    };
    row(out, "", place);

    let _ = writeln!(out, "\nwhere values come from");
    row(out, "measured", &facts.decision.tuned.to_string());
    let config = facts.decision.config.as_ref().map_or("none".to_owned(), |path| path.display().to_string());
    row(out, "configured", &config);
    row(out, "collectives", &format!("parnass info shows the table; {}", chosen(tunables::COLLECTIVE)));
    text
}

/// Every value in force.
pub fn tunables_text(facts: &Facts) -> String {
    let settings = &facts.decision.settings;
    let mut text = String::new();
    for (index, tunable) in TABLE.iter().enumerate() {
        let (value, origin) = settings.of(index);
        let default = match *value == tunable.default {
            true => String::new(),
            false => format!("; the default is {}", tunable.show(&tunable.default)),
        };
        let _ = writeln!(text, "{} = {} ({origin}{default})", tunable.name, tunable.show(value));
        let _ = writeln!(text, "    {}", tunable.what);
        let _ = writeln!(text, "    {}, or {} in the environment", tunable.allowed(), tunable.variable);
    }
    let _ = writeln!(text, "\nmeasured values: {}", facts.decision.tuned);
    text.push_str(
        "Chosen by mpiexec --tunable NAME=VALUE, by the environment, or in a file: see docs/tunables.md.\n",
    );
    text
}

/// For programs.
pub fn tunables_json(settings: &Settings) -> Value {
    let rows = TABLE.iter().enumerate().map(|(index, tunable)| {
        let (value, origin) = settings.of(index);
        json!({
            "name": tunable.name,
            "variable": tunable.variable,
            "type": tunable.kind.name(),
            "value": value.to_string(),
            "default": tunable.default.to_string(),
            "origin": origin.to_string(),
            "read_by": tunable.room,
            "measured": tunable.measured,
            "what": tunable.what,
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::tests::facts;

    #[test]
    fn the_protocols_are_explained() {
        let mut facts = facts();
        facts.decision.settings.set("direct_threshold", "123", tunables::Origin::Environment).unwrap();
        let text = text(&facts);
        for part in [
            "up to 999 B",
            "direct_threshold = 123 B (environment)",
            "Operation not permitted",
            "longer than 2 KiB, and up to 2048 KiB",
            "up to 2 ranks",
            "keepers_roam = on (default)",
            "it runs on any processor",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn every_tunable_is_listed() {
        let text = tunables_text(&facts());
        assert!(TABLE.iter().all(|row| text.contains(row.variable) && text.contains(row.what)), "{text}");
    }
}
