// Which way round prices are shown: as people quote the pair, or turned over. One choice for all lists and charts, kept by the browser.
import { h } from "./dom.js";

const KEY = "zuno-prices-turned";
let turned = null;

export function pricesTurned() {
  if (turned === null) {
    try {
      turned = localStorage.getItem(KEY) === "yes";
    } catch {
      turned = false;
    }
  }
  return turned;
}

export function turnPrice(price) {
  return pricesTurned() ? 1 / Number(price) : Number(price);
}

/** Both edges, the lower one first. */
export function turnRange(lower, upper) {
  return pricesTurned() ? [1 / Number(upper), 1 / Number(lower)] : [Number(lower), Number(upper)];
}

/** "USDC per ETH" as "ETH per USDC". */
export function turnUnit(unit) {
  return pricesTurned() ? unit.split(" per ").reverse().join(" per ") : unit;
}

/** Bands of a pool's liquidity, as charts take them. */
export function turnBands(bands) {
  return bands.map((band) => {
    const [low, high] = turnRange(band.priceLower, band.priceUpper);
    return { low, high, amount: Number(band.liquidity) };
  });
}

export function turnButton(redraw) {
  return h("button", { type: "button", class: "button", "aria-pressed": String(pricesTurned()), title: "Show prices in lists and charts the other way round", onclick: () => {
    turned = !pricesTurned();
    try {
      localStorage.setItem(KEY, turned ? "yes" : "no");
    } catch { /* storage is forbidden: it holds until the page is closed */ }
    redraw();
  } }, "Invert prices");
}
