// Browsers start no worker for a page that is read from a disk. There, a hidden frame does what
// the search's worker would do. (The theme would load a script for this from a CDN.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) =>
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", {data})));
      this.ready = new Promise((loaded, failed) => {
        const script = this.inside.document.createElement("script");
        Object.assign(script, {src: String(address), onload: loaded, onerror: failed});
        this.inside.document.head.append(script);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})));
    }
  };
}
