// An act: ask the server, show what it says would be done, ask for the word where it wants one, and say what came of it.
import { h } from "./dom.js";
import { askForWord, button } from "./widgets.js";

/**
 * Post `body` to `path`. Where the server names words to be typed, show what each is for and ask for it. Brings the answer, or null
 * where the word was not typed. What went wrong is thrown, with a lost connection as a problem of status 0: it is then not known
 * whether the act was done, and the caller reads again.
 */
export async function act(api, path, body, { title, action, danger = true, content = [] }) {
  const typed = {};
  for (;;) {
    try {
      return await api.post(path, { ...body, ...typed });
    } catch (error) {
      const word = error.document?.word;
      const field = error.document?.field ?? "word";
      if (!word || field in typed) throw error;
      if (!(await askForWord({ title, word, action, danger, content: [...content, h("p", null, error.message)] }))) return null;
      typed[field] = word;
    }
  }
}

/** A button that does one thing at a time, however often it is pressed; `after` reads again, also where the act failed. */
export function actButton(api, label, run, { kind = "", after, title } = {}) {
  const pressed = button(label, async () => {
    if (pressed.disabled) return;
    pressed.disabled = true;
    try {
      const done = await run();
      if (done) api.toast(typeof done === "string" ? done : "Done.", "good");
    } catch (error) {
      if (error.name === "AbortError") return;
      const unknown = error.status === 0 ? " Whether it was done is not known: look before you try again." : "";
      api.toast(error.message + unknown, "bad");
    } finally {
      pressed.disabled = false;
      await after?.();
    }
  }, { kind, title });
  return pressed;
}
