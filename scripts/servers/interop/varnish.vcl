# A template for `servers`. Requests that are not refused here are forwarded to the origin.
vcl 4.1;

backend origin {
    .host = "127.0.0.1";
    .port = "@{origin}";
}

sub vcl_recv {
    if (local.socket == "idle") {
        set sess.timeout_idle = 1s;
    }
    if (req.url == "/refuse/403") {
        return (synth(403));
    }
    if (req.url == "/refuse/413") {
        return (synth(413));
    }
    if (req.url == "/redirect/307") {
        return (synth(307));
    }
    if (req.url == "/redirect/308") {
        return (synth(308));
    }
    return (pass);
}

sub vcl_synth {
    if (resp.status == 307 || resp.status == 308) {
        set resp.http.Location = "/sink";
    }
}
