// SPDX-License-Identifier: MIT
// Usage: node.mjs SETTINGS. The keys of the JSON file SETTINGS are ports (http, tls, idle, limit1, limit2, limit10, limit100, limit1000, mutual), files, ids,
// certificate, key, client_authority.

import fs from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import path from 'node:path'
import zlib from 'node:zlib'

const settings = JSON.parse(fs.readFileSync(process.argv[2]))
const ids = fs.openSync(settings.ids, 'a')
const secure = {
  allowHTTP1: true,
  cert: fs.readFileSync(settings.certificate),
  key: fs.readFileSync(settings.key),
}

function send(response, status, body, fields = {}) {
  response.writeHead(status, { 'content-length': Buffer.byteLength(body), ...fields })
  response.end(body)
}

// The bytes of which the bodies of `make endurance` are parts; the client has the same.
const bytes = Buffer.from(Uint8Array.from({ length: 1 << 20 }, (_, index) => index * 7 + (index >> 8) * 13))

// Answers with `size` bytes from `offset`, and says how many bytes were received, and whether they are those from `expected`. Some
// bodies have no declared length.
function answerPattern(request, response, offset, size, expected) {
  let [count, isRight] = [0, true]
  request.on('data', chunk => {
    // Files are sent from their beginning.
    const start = Number(request.headers['content-length']) === bytes.length ? 0 : expected
    isRight &&= chunk.equals(bytes.subarray(start + count, start + count + chunk.length))
    count += chunk.length
  })
  request.on('error', () => {})
  response.on('error', () => {})
  request.on('end', () => {
    response.writeHead(200, { 'x-received': `${count} ${isRight}`, ...(offset % 3 ? { 'content-length': size } : {}) })
    response.end(bytes.subarray(offset, offset + size))
  })
}

function answer(request, response) {
  const url = request.url
  const refusal = /^\/refuse\/(\d+)$/.exec(url)
  if (refusal) {
    // Over HTTP/1.1 a 413 closes the connection, possibly while the client is still sending.
    const closing = refusal[1] === '413' && request.httpVersionMajor === 1 ? { connection: 'close' } : {}
    return send(response, Number(refusal[1]), 'refused\n', { 'www-authenticate': 'Basic realm="users"', ...closing })
  }
  const redirect = /^\/redirect\/(\d+)$/.exec(url)
  if (redirect) return send(response, Number(redirect[1]), '', { location: '/sink' })
  const pattern = /^\/pattern\/(\d+)\/(\d+)\/(\d+)$/.exec(url)
  if (pattern) return answerPattern(request, response, ...pattern.slice(1).map(Number))
  let received = 0
  request.on('data', chunk => { received += chunk.length })
  request.on('error', () => {})
  request.on('end', () => {
    if (request.headers['x-request-id']) fs.writeSync(ids, request.headers['x-request-id'] + '\n')
    if (url === '/sink') return send(response, 200, JSON.stringify({ received }))
    if (url === '/early') {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' })
      return send(response, 200, '{}')
    }
    if (url === '/trailers') {
      response.writeHead(200, { trailer: 'x-sum' })
      response.write('hello')
      response.addTrailers({ 'x-sum': '5' })
      return response.end()
    }
    const isZipped = url.startsWith('/gzip/')
    const file = path.join(settings.files, path.basename(url))
    if (!fs.existsSync(file)) return send(response, 404, 'not found\n')
    const body = fs.readFileSync(file)
    if (isZipped) return send(response, 200, zlib.gzipSync(body), { 'content-encoding': 'gzip' })
    const tag = `"${body.length}"`
    const fields = { etag: tag, 'accept-ranges': 'bytes' }
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    if (range && (request.headers['if-range'] ?? tag) === tag) {
      const first = Number(range[1])
      const last = range[2] ? Number(range[2]) : body.length - 1
      return send(response, 206, body.subarray(first, last + 1),
        { ...fields, 'content-range': `bytes ${first}-${last}/${body.length}` })
    }
    send(response, 200, body, fields)
  })
}

function listen(server, port, keepAlive) {
  server.keepAliveTimeout = keepAlive
  server.on('request', answer)
  server.on('error', error => { console.error(error); process.exit(1) })
  server.listen(port, '127.0.0.1', 8192)
  return server
}

const ports = settings.ports
listen(http.createServer(), ports.http, 60_000)
listen(http2.createSecureServer(secure), ports.tls, 60_000)
listen(http2.createSecureServer(secure), ports.idle, 1_000)
  .on('session', session => session.setTimeout(1_000, () => session.close()))
listen(http2.createSecureServer({ ...secure, ca: fs.readFileSync(settings.client_authority), requestCert: true,
  rejectUnauthorized: true }), ports.mutual, 60_000)
for (const limit of [1, 2, 10, 100, 1000]) {
  // A graceful GOAWAY: streams up to the last one in it are processed, later ones are not.
  listen(http2.createSecureServer(secure), ports[`limit${limit}`], 60_000).on('session', session => {
    let streams = 0
    session.on('stream', () => { if (++streams === limit) session.close() })
  })
}
