// Searching takes a worker, which browsers do not start from a page that was opened as a file.
// There a hidden frame takes its place, after iframe-worker by Martin Donath (MIT licence).
if (location.protocol === "file:") {
  const shim = `
    postMessage = data => parent.postMessage(data, "*")
    importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise(done => {
      const script = document.createElement("script")
      script.src = url
      script.onload = done
      document.body.appendChild(script)
    })), Promise.resolve())`

  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.document.open()
      inside.document.write(
        `<html><body><script>${shim}<\/script><script src="${url}"><\/script></body></html>`
      )
      inside.document.close()
      this.ready = new Promise(done => inside.addEventListener("load", done))
      window.addEventListener("message", event => {
        if (event.source !== inside) return
        const told = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(told)
        if (this.onmessage) this.onmessage(told)
      })
    }

    postMessage(data) {
      const copy = structuredClone(data)
      this.ready.then(() => {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: copy }))
      })
    }

    terminate() {
      this.frame.remove()
    }
  }
}
