// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The decisions of an ``ImageSlot``. A pure value; tokens identify requests.
struct ImageSlotStateMachine: Sendable {
    /// The visible state of the slot.
    private(set) var state = ImageSlot.State()
    private var token = 0
    private var current: ImageCacheKey?
    private var download: ImageDownload?

    /// Begins a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - cached: The image, if it is in the memory cache.
    ///   - placeholder: The image to show meanwhile; `nil` for what is shown.
    /// - Returns: The download to cancel, and the token of the download to start, or `nil` for either.
    mutating func show(
        _ request: Request, cached: ImageContent?, placeholder: ImageContent?
    ) -> (old: ImageDownload?, token: Int?) {
        let key = ImageCacheKey(request)
        if case .loading = state.phase, current == key, cached == nil { return (nil, nil) }
        let old = cancel()
        if let cached {
            state = ImageSlot.State(image: cached, phase: .loaded)
            return (old, nil)
        }
        state = ImageSlot.State(image: placeholder ?? state.image, phase: .loading)
        current = key
        return (old, token)
    }

    /// Stores the download of a request. Returns whether the request is still the newest one.
    mutating func begin(_ download: ImageDownload, _ token: Int) -> Bool {
        guard token == self.token else { return false }
        self.download = download
        return true
    }

    /// Ends a request. Returns whether it was the newest one, so that the state has changed.
    mutating func end(_ token: Int, _ result: Result<ImageContent, any Error>) -> Bool {
        guard token == self.token else { return false }
        _ = cancel()
        switch result {
        case .success(let image): state = ImageSlot.State(image: image, phase: .loaded)
        case .failure(let error): state.phase = .failed(error)
        }
        return true
    }

    /// Removes the request and shows an image instead, or nothing. Returns the download to cancel.
    mutating func clear(_ placeholder: ImageContent?) -> ImageDownload? {
        defer { state = ImageSlot.State(image: placeholder) }
        return cancel()
    }

    /// Removes the request, and returns the download to cancel. The answers to earlier requests are ignored from now
    /// on.
    mutating func cancel() -> ImageDownload? {
        defer { (current, download) = (nil, nil) }
        token += 1
        if case .loading = state.phase { state.phase = .idle }
        return download
    }
}
