// SPDX-License-Identifier: MIT

/// Something with a response serializer, whose type a descendant may narrow.
///
/// A class cannot narrow the type of a property that it inherits; a property of a protocol's can be hidden.
public protocol ResponseSerializing: AnyObject {
    /// The serializer that is set.
    var anyResponseSerializer: any AFURLResponseSerialization { get set }
}

extension ResponseSerializing {
    /// What makes objects of responses: JSON unless set. It is looked at when a response is complete.
    public var responseSerializer: any AFURLResponseSerialization {
        get { anyResponseSerializer }
        set { anyResponseSerializer = newValue }
    }
}
