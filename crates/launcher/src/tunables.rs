//! The values that the ranks of a job work with: decided here, once, for all of them.

use std::ffi::OsStr;

use parnass_tunables::{TABLE, files, find};

use crate::arguments::Job;

/// Decides. What the ranks are told: the values that are not the defaults.
///
/// # Errors
/// What is wrong, where it stands, and what is allowed.
pub fn decide(job: &mut Job) -> Result<Vec<String>, String> {
    let own = files::environment();
    let options = || job.tunables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut decided: Option<Vec<String>> = None;
    for (number, part) in job.parts.iter().enumerate() {
        let text = |text: &OsStr| text.to_str().map(str::to_owned);
        let set = part.environment.set.iter();
        let set = set.filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        let environment: Vec<_> = own.iter().cloned().chain(set).collect();
        let words = files::decide(options(), &environment)?.settings.words();
        if let Some(other) = decided.replace(words.clone()).filter(|other| *other != words) {
            let differing = words.iter().find(|word| !other.contains(word));
            let differing = differing.or_else(|| other.iter().find(|word| !words.contains(word)));
            return Err(format!(
                "part {} of the command line has other values of tunables than part {number} ({}); all ranks of a job \
                 have the same: set them with -genv, or give --tunable",
                number + 1,
                differing.map_or("", String::as_str)
            ));
        }
    }
    // A job that a rank starts has the same values.
    for (name, value) in &job.tunables {
        let variable = TABLE[find(name)?].variable;
        for part in &mut job.parts {
            part.environment.set.push((variable.into(), value.into()));
        }
    }
    Ok(decided.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Part;

    fn job(tunables: &[(&str, &str)], parts: &[&[(&str, &str)]]) -> Job {
        let parts = parts.iter().map(|set| {
            let mut part = Part::default();
            // No file of this machine's user.
            part.environment.set = [("PARNASS_TUNED", ""), ("PARNASS_CONFIG", "")]
                .iter()
                .chain(*set)
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
            part
        });
        let tunables = tunables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Job { parts: parts.collect(), tunables: tunables.collect(), ..Job::default() }
    }

    #[test]
    fn options_come_after_the_environment() {
        let mut job = job(
            &[("direct_threshold", "5")],
            &[&[("PARNASS_DIRECT_THRESHOLD", "4"), ("PARNASS_DIRECT", "off")]],
        );
        assert_eq!(decide(&mut job).unwrap(), ["direct=off", "direct_threshold=5"]);
        assert_eq!(
            job.parts[0].environment.set.last(),
            Some(&("PARNASS_DIRECT_THRESHOLD".into(), "5".into()))
        );
    }

    #[test]
    fn parts_must_agree() {
        let mut differing = job(&[], &[&[("PARNASS_DIRECT_THRESHOLD", "4")], &[]]);
        let error = decide(&mut differing).unwrap_err();
        assert!(error.contains("part 2") && error.contains("direct_threshold=4"), "{error}");
        let same = &[("PARNASS_DIRECT_THRESHOLD", "4")][..];
        assert_eq!(decide(&mut job(&[], &[same, same])).unwrap(), ["direct_threshold=4"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(
            decide(&mut job(&[("direct_treshold", "4")], &[&[]]))
                .unwrap_err()
                .contains("did you mean direct_threshold?")
        );
        assert!(
            decide(&mut job(&[], &[&[("PARNASS_DIRECT", "2")]])).unwrap_err().contains("PARNASS_DIRECT: '2'")
        );
    }
}
