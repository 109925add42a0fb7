// SPDX-License-Identifier: MIT

import Fetch
import Testing

@Suite struct FormFieldTests {
    @Test(arguments: [
        ("a=b", "a", FormField.Content.text("b")),
        ("a=", "a", .text("")),
        ("a=b=c;type=x", "a", .text("b=c;type=x")),
        ("f=@p/q.png", "f", .file(path: "p/q.png", fileName: nil, mediaType: nil)),
        (
            "f=@q;type=image/png;filename=r.png", "f",
            .file(path: "q", fileName: "r.png", mediaType: "image/png")
        ),
    ])
    func `a field is a text or a file`(text: String, name: String, content: FormField.Content) throws {
        let field = try FormField(text)
        #expect(field.name == name)
        #expect(field.content == content)
    }

    @Test(arguments: ["", "a", "=b", "f=@", "f=@;type=x", "f=@x;what=y"])
    func `an invalid field is rejected`(text: String) {
        #expect(throws: UsageError.self) { try FormField(text) }
    }
}
