// SPDX-License-Identifier: MIT

public import HTTPTypes

extension HTTPField.Name {
    /// `Last-Event-ID`, the ID of the event after which an event stream continues (WHATWG HTML, “The Last-Event-ID
    /// header”).
    public static let lastEventID = HTTPField.Name("Last-Event-ID") ?? .ifNoneMatch  // The text is a valid name.
}
