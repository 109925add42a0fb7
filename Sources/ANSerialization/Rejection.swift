// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// A response that a ``ResponseValidation`` did not take, as a whole: an API explains its errors in the body.
///
/// ```swift
/// } catch SerializationError.rejected(let rejection) {
///     let problem = try rejection.decoded(as: Problem.self)
/// ```
public struct Rejection: Sendable {
    /// What would have been taken.
    public let validation: ResponseValidation
    /// Whether the status was not taken.
    public let rejectsStatus: Bool
    /// Whether the media type was not taken.
    public let rejectsMediaType: Bool
    /// The response's head.
    public let head: ResponseHead
    /// The response's body.
    public let body: Data

    /// The status code received.
    public var status: Int { head.status.code }
    /// The media type received, if any.
    public var mediaType: String? { head.mediaType }

    /// The body as a document of this type, such as the API's error document, whatever its media type says; JSON unless
    /// the decoder is another one.
    ///
    /// - Throws: ``SerializationError``.
    public func decoded<Value: Decodable & Sendable>(
        as type: Value.Type, decoder: some ResponseDecoder = JSONDecoder()
    ) throws(SerializationError) -> Value {
        try DecodableResponseSerializer(type, decoder: decoder).decode(head, body)
    }

    /// What a serializer makes of the response, whatever its status and media type: `try rejection.value(as: .string)`.
    ///
    /// - Throws: ``SerializationError``, or what a serializer written by hand throws.
    public func value<Serializer: ResponseSerializer>(as serializer: Serializer) throws -> Serializer.Output {
        try serializer.serialize(head, body)
    }
}

extension Rejection: CustomStringConvertible {
    /// A sentence with the status and type, what was wanted instead, the URL without secrets, and the body's beginning.
    public var description: String {
        var text = "The response of \(head.url.redactedDescription) was rejected: "
        if rejectsStatus {
            let phrase = head.status.reasonPhrase
            text +=
                "status \(status)\(phrase.isEmpty ? "" : " " + Excerpt.of(phrase)), where \(wantedStatuses) is wanted"
        }
        if rejectsStatus, rejectsMediaType { text += "; and " }
        if rejectsMediaType {
            text += mediaType.map { "media type \(Excerpt.of($0))" } ?? "no media type"
            text += ", where \(wantedMediaTypes) is wanted"
        }
        return text + (body.isEmpty ? ". The body is empty." : ". The body begins with “\(Excerpt.of(body))”.")
    }

    /// The acceptable statuses as ranges: `200–299, 304`.
    private var wantedStatuses: String {
        var ranges: [ClosedRange<Int>] = []
        for status in (validation.acceptableStatuses ?? []).sorted() {
            if let last = ranges.last, last.upperBound < status, last.upperBound.distance(to: status) == 1 {
                ranges[ranges.count - 1] = last.lowerBound...status
            } else {
                ranges.append(status...status)
            }
        }
        guard !ranges.isEmpty else { return "no status" }
        return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)" }
            .joined(separator: ", ")
    }

    private var wantedMediaTypes: String {
        let types = validation.acceptableMediaTypes ?? []
        return types.isEmpty ? "no body" : types.map(\.description).joined(separator: ", ")
    }
}
