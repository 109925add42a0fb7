// SPDX-License-Identifier: MIT

/// The lines with the progress of several transfers: one each, and one for all.
package struct ProgressLines {
    /// The running transfers.
    package var transfers: [ProgressLine]
    /// The sum of all transfers, including completed ones.
    package var total: ProgressLine

    package init(transfers: [ProgressLine], total: ProgressLine) {
        self.transfers = transfers
        self.total = total
    }

    /// Returns the lines for a terminal: each less than `columns` wide, and fewer than `rows`. If not all transfers
    /// fit, the first ones are shown.
    package func bars(columns: Int, rows: Int) -> [String] {
        let room = max(0, rows - 2)
        var lines = transfers.prefix(room).map { $0.bar(columns: columns) }
        if transfers.count > room, room > 0 {
            lines[room - 1] = String("… and \(transfers.count - room + 1) more".prefix(max(0, columns - 1)))
        }
        return lines + [total.bar(columns: columns)]
    }
}
