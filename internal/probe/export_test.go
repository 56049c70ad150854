package probe

// Door has the Prober try another port than 9 where agents have no health service: binding that one takes privileges.
func (p *Prober) Door(port int) { p.door = port }

// Witnessed says whether any witness has answered.
func (p *Prober) Witnessed() bool { return p.witnessed.Load() > 0 }
