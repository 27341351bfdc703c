//! Parsing of the command line in `--resolver`.

use crate::error::Error;

/// Splits a command line into words. A word that contains spaces must be quoted with `'` or `"`. Backslashes have no
/// special meaning, because no shell reads the line.
///
/// # Errors
/// [`Error::Usage`] if a quote is not closed, or if there is no program.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) fn words(line: &str) -> Result<Vec<String>, Error> {
    let wrong = |what: &str| Error::Usage(what.into());
    let mut words: Vec<String> = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        let mut letters = rest.chars();
        while let Some(letter) = letters.next().filter(|letter| !letter.is_whitespace()) {
            rest = letters.as_str();
            if letter == '\'' || letter == '"' {
                let quoted = rest.split_once(letter);
                let (quoted, behind) = quoted.ok_or_else(|| {
                    wrong("the command contains a quote (' or \") without a closing quote")
                })?;
                word.push_str(quoted);
                rest = behind;
                letters = rest.chars();
            } else {
                word.push(letter);
            }
        }
        words.push(word);
        rest = rest.trim_start();
    }
    let program = words
        .first_mut()
        .filter(|program| !program.is_empty())
        .ok_or_else(|| wrong("the command is empty; name a program"))?;
    // The program is started in a temporary working directory. A relative path with a slash would be resolved there, and the
    // program would not be found.
    if program.contains('/')
        && let Ok(absolute) = std::path::absolute(&*program)
        && let Some(absolute) = absolute.to_str()
    {
        *program = absolute.to_owned();
    }
    Ok(words)
}
