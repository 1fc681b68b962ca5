//! Rows as they are measured: columns for a terminal, or Markdown.

/// The columns, as titles and characters in a terminal; the first one is of names.
pub struct Table {
    columns: &'static [(&'static str, usize)],
    markdown: bool,
}

impl Table {
    /// Prints the titles.
    pub fn new(columns: &'static [(&'static str, usize)], markdown: bool) -> Self {
        let table = Table { columns, markdown };
        if markdown {
            println!();
        }
        table.row(&columns.iter().map(|(title, _)| title.to_string()).collect::<Vec<_>>());
        if markdown {
            println!("|{}", "---|".repeat(columns.len()));
        }
        table
    }

    /// Prints a row, a cell for each title.
    pub fn row(&self, cells: &[String]) {
        if self.markdown {
            println!("| {} |", cells.join(" | "));
            return;
        }
        let mut line = String::new();
        for (i, (cell, &(_, width))) in cells.iter().zip(self.columns).enumerate() {
            line += &match i {
                0 => format!("{cell:<width$}"),
                _ => format!(" {cell:>width$}"),
            };
        }
        println!("{}", line.trim_end());
    }

    /// Ends the table.
    pub fn end(self) {
        if self.markdown {
            println!();
        }
    }
}
