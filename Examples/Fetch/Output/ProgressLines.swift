// SPDX-License-Identifier: MIT

/// The lines that show how far several transfers have come: one each, and one for all of them.
package struct ProgressLines {
    /// The transfers that run.
    package var transfers: [ProgressLine]
    /// All of them together, and those that are over.
    package var total: ProgressLine

    package init(transfers: [ProgressLine], total: ProgressLine) {
        self.transfers = transfers
        self.total = total
    }

    /// The lines for a terminal: never wider than `columns`, and fewer than `rows`. Of more transfers than there is room
    /// for, the first ones are shown.
    package func bars(columns: Int, rows: Int) -> [String] {
        let room = max(0, rows - 2)
        var lines = transfers.prefix(room).map { $0.bar(columns: columns) }
        if transfers.count > room, room > 0 {
            lines[room - 1] = String("… and \(transfers.count - room + 1) more".prefix(max(0, columns - 1)))
        }
        return lines + [total.bar(columns: columns)]
    }
}
