//! The flags of commands that draw their answer into a file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::Failure;
use super::output_file::OutputFile;
use super::solution_output::draw;
use super::stream::Stream;
use crate::board::Placement;
use crate::render::{Drawing, Picture, PictureFormat};

/// The files of pictures or charts.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct PictureArgs {
    /// Draw the board, and write the picture to FILE as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Draw the board, and write the picture to FILE as PNG.
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
}

/// The begun files.
#[derive(Debug)]
pub(super) struct PictureFiles<'a> {
    files: Vec<(OutputFile<'a>, PictureFormat)>,
}

impl PictureArgs {
    /// Returns the flag that was given, if there is one.
    pub(super) fn given(&self) -> Option<&'static str> {
        self.svg.as_ref().map(|_| "--svg").or(self.png.as_ref().map(|_| "--png"))
    }

    /// Begins the files for a board of this size: what cannot be drawn or written is an error
    /// before the work, not after it.
    pub(super) fn begin(&self, rows: usize, cols: usize) -> Result<PictureFiles<'_>, Failure> {
        if self.png.is_some() {
            Picture::fits_png(rows, cols).map_err(Failure::usage)?;
        }
        self.begin_files("picture")
    }

    /// Begins the files for `what`, for example "chart".
    pub(super) fn begin_files(&self, what: &'static str) -> Result<PictureFiles<'_>, Failure> {
        let mut files = Vec::new();
        for (path, format) in [(&self.svg, PictureFormat::Svg), (&self.png, PictureFormat::Png)] {
            if let Some(path) = path {
                files.push((OutputFile::begin(what, path)?, format));
            }
        }
        Ok(PictureFiles { files })
    }
}

impl PictureFiles<'_> {
    /// Draws the picture into all files. Without this call, no file appears.
    pub(super) fn finish(self, picture: &Picture<'_>) -> Result<(), Failure> {
        self.finish_with(|format, out| picture.write(format, out))
    }

    /// Writes all files, each by `write` in its format.
    pub(super) fn finish_with(
        self,
        write: impl Fn(PictureFormat, &mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        for (file, format) in self.files {
            file.finish_with(|out| write(format, out))?;
        }
        Ok(())
    }
}

/// Prints a placement in a format; SVG and PNG show `picture`, which may have more than that.
pub(super) fn draw_answer(
    stream: &mut Stream,
    drawing: Drawing,
    placement: &Placement,
    picture: &Picture<'_>,
) -> ControlFlow<()> {
    let format = match drawing {
        Drawing::Svg => PictureFormat::Svg,
        Drawing::Png => PictureFormat::Png,
        _ => return draw(stream, drawing, placement),
    };
    stream.write(|out| picture.write(format, out))
}
