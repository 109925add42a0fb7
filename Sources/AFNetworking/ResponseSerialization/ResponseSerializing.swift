// SPDX-License-Identifier: MIT

/// An object with a response serializer, whose static type a subclass may narrow.
///
/// Swift does not let a class narrow the type of an inherited property. A property in a protocol extension can be
/// shadowed.
public protocol ResponseSerializing: AnyObject {
    /// The response serializer that is set.
    var anyResponseSerializer: any AFURLResponseSerialization { get set }
}

extension ResponseSerializing {
    /// The serializer that converts responses to objects. Default: an ``AFJSONResponseSerializer``. It is read when a
    /// response is complete, so a change also applies to running tasks.
    public var responseSerializer: any AFURLResponseSerialization {
        get { anyResponseSerializer }
        set { anyResponseSerializer = newValue }
    }
}
