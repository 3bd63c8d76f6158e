// Which account a page shows and acts on. Every question and every act names it.
import { chooseAccount, currentAccount, currentSession, loadSession } from "./api.js";
import { h } from "./dom.js";

/** The page's `api`, whose questions, acts and addresses under /trading name the account that is chosen. */
export async function openAccount(api) {
  if (!currentSession().mode) await loadSession();
  const account = currentAccount();
  const named = (path) => path.startsWith("/trading/");
  return {
    ...api,
    account,
    get: (path, query) => api.get(path, named(path) ? { ...query, account: account.name } : query),
    read: (path, query) => api.read(path, named(path) ? { ...query, account: account.name } : query),
    post: (path, body) => api.post(path, named(path) ? { ...body, account: account.name } : body),
    address: (path) => api.address(named(path) ? `${path}${path.includes("?") ? "&" : "?"}account=${encodeURIComponent(account.name)}` : path),
  };
}

/** The accounts of this home to choose from, each with its mode. */
export function accountChoice(api) {
  const { accounts } = api.session();
  if (accounts.length < 2) return null;
  return h("span", { class: "choices accounts", role: "group", "aria-label": "Account" }, accounts.map((account) =>
    h("button", { type: "button", "aria-pressed": String(account.name === api.account.name), onclick: async () => {
      chooseAccount(account.name);
      await api.redraw();
      document.querySelector(".accounts [aria-pressed=true]")?.focus();
    } }, describeAccount(account))));
}

export function describeAccount({ name, mode }) {
  return name === mode ? name : `${name} (${mode})`;
}
