// Where the regions' marks stand on the map: at their places, pushed apart where they would cover
// each other (Kuala Lumpur and Singapore are two degrees apart). Pure, in pixels.
import { Spot } from './status';

export interface View {
  west: number; // degrees
  north: number;
  scale: number; // pixels per degree
  width: number;
  height: number;
}

export interface Mark {
  spot: Spot;
  placeX: number; // where it really is
  placeY: number;
  x: number; // the middle of its circle
  y: number;
  radius: number;
  lines: string[]; // its label, beside the circle
  west: boolean; // to the left of it
}

interface Box {
  mark: Mark;
  left: number; // of the box, from the middle of the circle
  right: number;
  half: number; // of its height
}

const MARGIN = 12; // degrees around the outermost region
const PAD = 2; // pixels between two marks
const ROUNDS = 120;
const NARROW_PX = 520;
const NEAR_PX = 50;

/** As much of the world as people live in, and every region. */
export function viewOf(spots: Spot[], width: number): View {
  let [west, east, north, south] = [-135, 162, 68, -46];
  for (const { region } of spots) {
    if (region.longitude === null || region.latitude === null) continue;
    west = Math.max(-180, Math.min(west, region.longitude - MARGIN));
    east = Math.min(180, Math.max(east, region.longitude + MARGIN));
    north = Math.min(84, Math.max(north, region.latitude + MARGIN));
    south = Math.max(-58, Math.min(south, region.latitude - MARGIN));
  }
  const scale = width / (east - west);
  return { west, north, scale, width, height: Math.round((north - south) * scale) };
}

function labelOf(s: Spot, narrow: boolean): string[] {
  if (s.mood === 'idle') return narrow ? [] : [s.id];
  const used = s.total > 0 ? `${s.used}/${s.total}` : '';
  if (narrow) return [s.id];
  const there = s.servers > 0 ? `${s.servers} server${s.servers === 1 ? '' : 's'}` : `${s.hosts} host${s.hosts === 1 ? '' : 's'}`;
  return [s.id, used ? `${there}, ${used}` : there];
}

function boxOf(mark: Mark): Box {
  const wide = Math.max(0, ...mark.lines.map((l, i) => l.length * (i === 0 ? 8.5 : 6)));
  const label = mark.radius + (wide > 0 ? wide + 4 : 0);
  return {
    mark,
    left: mark.west ? label : mark.radius,
    right: mark.west ? mark.radius : label,
    half: Math.max(mark.radius, mark.lines.length * 8),
  };
}

/** Labels stand to the right, but to the left of the westernmost of near ones: then few must move. */
function turnLabels(marks: Mark[]): void {
  const used = marks.filter((m) => m.spot.mood !== 'idle');
  const near = (a: Mark, b: Mark) => a !== b && Math.abs(a.placeX - b.placeX) < NEAR_PX && Math.abs(a.placeY - b.placeY) < NEAR_PX;
  for (const m of used) {
    const others = used.filter((o) => near(m, o));
    m.west = others.filter((o) => o.placeX > m.placeX).length > others.filter((o) => o.placeX < m.placeX).length;
  }
}

/** Pushes two boxes apart along the way that is shorter. */
function part(a: Box, b: Box): boolean {
  const [l, r] = a.mark.x <= b.mark.x ? [a, b] : [b, a];
  const [u, d] = a.mark.y <= b.mark.y ? [a, b] : [b, a];
  const overX = l.mark.x + l.right + PAD - (r.mark.x - r.left);
  const overY = u.mark.y + u.half + PAD - (d.mark.y - d.half);
  if (overX <= 0 || overY <= 0) return false;
  if (overX < overY) {
    l.mark.x -= overX / 2;
    r.mark.x += overX / 2;
  } else {
    u.mark.y -= overY / 2;
    d.mark.y += overY / 2;
  }
  return true;
}

export function marksOf(spots: Spot[], view: View): Mark[] {
  const narrow = view.width < NARROW_PX;
  const most = Math.max(1, ...spots.map((s) => s.total));
  const reach = narrow ? 7 : 12;
  const marks = spots.flatMap((spot): Mark[] => {
    const { latitude, longitude } = spot.region;
    if (latitude === null || longitude === null) return [];
    const placeX = (longitude - view.west) * view.scale;
    const placeY = (view.north - latitude) * view.scale;
    const radius = spot.mood === 'idle' ? 2.5 : 6 + reach * Math.sqrt(spot.total / most);
    return [{ spot, placeX, placeY, x: placeX, y: placeY, radius, lines: labelOf(spot, narrow), west: false }];
  });
  turnLabels(marks);
  const boxes = marks.map(boxOf);
  for (let round = 0; round < ROUNDS; round++) {
    let moved = false;
    for (let i = 0; i < boxes.length; i++)
      for (let k = i + 1; k < boxes.length; k++) moved = part(boxes[i]!, boxes[k]!) || moved;
    for (const { mark, left, right, half } of boxes) {
      mark.x = Math.max(left, Math.min(view.width - right, mark.x));
      mark.y = Math.max(half, Math.min(view.height - half, mark.y));
    }
    if (!moved) break;
  }
  return marks;
}
