//! The performance board: JSONL records through polars to SVG, PNG and Markdown.
//!
//! Everything shown comes from the logs and the dispatch tables of a data folder; nothing depends on
//! when or where it is rendered, so the same data give the same bytes.

mod axis;
mod board;
mod fig;
mod files;
mod font;
mod frames;
mod layout;
mod markdown;
mod paint;
mod pictures;
mod region;
mod rows;
mod scene;
mod store;
mod theme;
mod tuned;
mod wall;

use memra_harness::{
    exit::Code,
    record::{self, LogError},
    sweep::SweepError,
};
use std::{
    io,
    path::{Path, PathBuf},
};

/// What a board is made from, and where it goes.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Logs (`yyyy-mm/*.jsonl`) and dispatch tables (`dispatch/`).
    pub data_dir: PathBuf,
    /// Folder of the pictures and their `README.md`; made when it is not there.
    pub boards_dir: PathBuf,
    /// A Markdown file with one pair of markers, between which a summary is put; `None` leaves all others alone.
    pub readme: Option<PathBuf>,
}

/// What a render did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files written, because they were missing or differed.
    pub written: Vec<PathBuf>,
    /// Files that were as they should be.
    pub unchanged: Vec<PathBuf>,
    /// Pictures taken away, because the logs hold nothing for them any more.
    pub removed: Vec<PathBuf>,
    /// Comparisons shown, checks of the harness included.
    pub comparisons: usize,
    /// What the user should know: torn lines left out, pictures that could not be made.
    pub warnings: Vec<String>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staleness {
    /// Files that are missing, differ from what the logs give, or should not be there.
    pub differing: Vec<PathBuf>,
    /// What the user should know: torn lines left out, pictures that were not compared.
    pub warnings: Vec<String>,
}

/// What went wrong with a board. Nothing was changed, unless it is said.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to show.
    #[error("no measurements in {0}; `memra nightly --quick` or `memra ab` makes some")]
    Empty(PathBuf),
    /// The logs cannot be read; a corrupt line is named by file and number.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file cannot be read or written; files written before it stay.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The README's markers are not one ordered pair; the README is as it was.
    #[error("{path}: {problem}; it needs one line `{start}` and after it one line `{end}`, outside code", start = region::START, end = region::END)]
    Markers {
        /// The README.
        path: PathBuf,
        /// What is wrong, with line numbers.
        problem: String,
    },
    /// A file of the boards folder that `memra board` did not write.
    #[error(
        "{0} was not written by `memra board`, and would be overwritten; `--set paths.boards=DIR` names another folder"
    )]
    Foreign(PathBuf),
    /// A dispatch table cannot be read.
    #[error(transparent)]
    Dispatch(#[from] SweepError),
    /// A dispatch table says what cannot be.
    #[error(
        "dispatch table of {device_class}: {key}: a speed-up of {speedup} is none; remove the entry and run `memra sweep`"
    )]
    Speedup {
        /// The table's device class.
        device_class: String,
        /// The entry's key.
        key: String,
        /// What it says.
        speedup: f64,
    },
    /// A query failed: a fault of this crate.
    #[error("the board's query failed: {0}")]
    Query(#[from] polars::error::PolarsError),
    /// A picture could not be drawn.
    #[error("a picture could not be drawn: {0}")]
    Draw(String),
}

impl Error {
    /// The exit code it means.
    pub fn code(&self) -> Code {
        match self {
            Error::Empty(_) | Error::Markers { .. } | Error::Foreign(_) => Code::Usage,
            Error::Log(e) => e.code(),
            Error::Dispatch(e) => e.code(),
            Error::Speedup { .. } => Code::Corrupt,
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Code::Usage,
            Error::Io { .. } | Error::Query(_) | Error::Draw(_) => Code::Unfit,
        }
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_owned(), source }
    }
}

/// Draws the board anew. Files that are right already are not touched; each other one is replaced as a whole.
///
/// # Errors
/// [`Error`]; with no measurements at all, markers that are not right, or another's files in the boards folder, nothing is
/// written.
pub fn render(inputs: &Inputs) -> Result<Report, Error> {
    refuse_foreign(&inputs.boards_dir)?;
    let made = make(inputs)?;
    let mut report = Report { comparisons: made.comparisons, warnings: made.warnings, ..Report::default() };
    for file in &made.files {
        match files::replace(&file.path, file.bytes.as_deref())? {
            files::Change::Written => report.written.push(file.path.clone()),
            files::Change::Removed => report.removed.push(file.path.clone()),
            files::Change::None if file.bytes.is_some() => report.unchanged.push(file.path.clone()),
            files::Change::None => {}
        }
    }
    Ok(report)
}

/// Compares the board that lies there with what the logs give; writes nothing.
///
/// # Errors
/// As [`render`].
pub fn check(inputs: &Inputs) -> Result<Staleness, Error> {
    let made = make(inputs)?;
    let mut found = Staleness { warnings: made.warnings, ..Staleness::default() };
    for file in &made.files {
        if file.needs_search_log && !made.has_search_log && file.bytes.is_some() {
            continue;
        }
        if files::read(&file.path)? != file.bytes {
            found.differing.push(file.path.clone());
        }
    }
    if !made.has_search_log && made.files.iter().any(|file| file.needs_search_log && file.bytes.is_some()) {
        let text = "the sweep's picture was not compared: it is drawn from trial logs, which are not in this data folder";
        found.warnings.push(text.to_owned());
    }
    Ok(found)
}

/// A folder is ours where its page says so; elsewhere neither a page nor a picture may be in our way.
fn refuse_foreign(boards_dir: &Path) -> Result<(), Error> {
    let page = boards_dir.join(PAGE);
    match files::read(&page)? {
        Some(bytes) if String::from_utf8_lossy(&bytes).contains(markdown::OURS) => return Ok(()),
        Some(_) => return Err(Error::Foreign(page)),
        None => {}
    }
    let pictures = pictures::STEMS.into_iter().flat_map(|stem| picture_paths(boards_dir, stem));
    match pictures.map(|(_, _, path)| path).find(|path| path.exists()) {
        Some(path) => Err(Error::Foreign(path)),
        None => Ok(()),
    }
}

/// Theme, extension and path of each file of a picture.
fn picture_paths(boards_dir: &Path, stem: &str) -> Vec<(theme::Theme, &'static str, PathBuf)> {
    let path = |theme: theme::Theme, extension| {
        (theme, extension, boards_dir.join(format!("{stem}{}.{extension}", theme.suffix())))
    };
    theme::Theme::ALL
        .into_iter()
        .flat_map(|theme| ["svg", "png"].map(|extension| path(theme, extension)))
        .collect()
}

/// The page beside the pictures.
const PAGE: &str = "README.md";

/// A file as it should be.
struct File {
    path: PathBuf,
    /// `None`: it should not be there.
    bytes: Option<Vec<u8>>,
    /// Whether it is drawn from the full trial logs, which are not committed.
    needs_search_log: bool,
}

struct Made {
    files: Vec<File>,
    comparisons: usize,
    warnings: Vec<String>,
    has_search_log: bool,
}

fn make(inputs: &Inputs) -> Result<Made, Error> {
    let Inputs { data_dir, boards_dir, readme } = inputs;
    let reading = record::read_dir(data_dir)?;
    let board = board::Board::new(&reading, data_dir)?;
    if board.is_empty() {
        return Err(Error::Empty(data_dir.clone()));
    }
    let drawn = pictures::all(&board);
    let pictures: Vec<markdown::Picture> = drawn.iter().map(|(picture, _)| *picture).collect();
    let text =
        |path: PathBuf, text: String| File { path, bytes: Some(text.into_bytes()), needs_search_log: false };
    let mut made = Vec::new();
    // First, since it is what can be wrong by a user's hand: then nothing is written.
    if let Some(readme) = readme {
        let old = std::fs::read_to_string(readme).map_err(Error::io(readme))?;
        let region = markdown::region(&board, &pictures, &files::relative(boards_dir, readme)?);
        let new = region::replace(&old, &region)
            .map_err(|problem| Error::Markers { path: readme.clone(), problem })?;
        made.push(text(readme.clone(), new));
    }
    made.push(text(boards_dir.join(PAGE), markdown::page(&board, &pictures)));
    for stem in pictures::STEMS {
        let scene = drawn.iter().find(|(picture, _)| picture.stem == stem);
        made.extend(picture_files(boards_dir, stem, scene)?);
    }
    Ok(Made {
        files: made,
        comparisons: board.devices.iter().map(|d| d.comparisons.len() + d.checks.len()).sum(),
        warnings: [reading.warnings, board.warnings].concat(),
        has_search_log: board.tuned.iter().any(|kernel| !kernel.best_so_far.is_empty()),
    })
}

/// SVG and PNG in both themes, or that they should not be there.
fn picture_files(
    boards_dir: &Path,
    stem: &str,
    drawn: Option<&(markdown::Picture, scene::Scene)>,
) -> Result<Vec<File>, Error> {
    let mut made = Vec::new();
    for (theme, extension, path) in picture_paths(boards_dir, stem) {
        let bytes = match drawn {
            Some((picture, scene)) if extension == "svg" => {
                Some(paint::svg(scene, theme, picture.alt)?.into_bytes())
            }
            Some((_, scene)) => Some(paint::png(scene, theme)?),
            None => None,
        };
        made.push(File { path, bytes, needs_search_log: stem == "sweep" });
    }
    Ok(made)
}

#[cfg(test)]
mod samples;
